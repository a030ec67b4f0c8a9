--- Chains: jobs that must start one after the other, in the order they came.
--   heads          chain -> the job whose turn it is, from when it is ready until it has ended
--   tail:<chain>   the jobs blocked behind it, by stamp
-- A head that waits for its next attempt keeps its turn, so the order holds through retries; where
-- failures pass, it gives the turn up and comes back before those that came later.
--@include keys, spec_line, lane, table_names
--@exports take_turns, pass_turns
local WHOLE_QUEUE = 'q'   -- the one chain whose jobs may be of several lanes

--- Of items {id, score, chain, …} that come, those that are ready; the others are blocked.
local function take_turns(items)
  local chains = {}
  for _, item in ipairs(items) do
    if item.chain then
      chains[item.chain] = true
    end
  end
  chains = names_in(chains)
  if #chains == 0 then
    return items
  end
  local heads, ready, blocked, tails, fresh = {}, {}, {}, {}, {}
  for i, head in ipairs(call('HMGET', key('heads'), unpack(chains))) do
    heads[chains[i]] = head
  end
  for _, item in ipairs(items) do
    local chain = item.chain
    if chain and heads[chain] and heads[chain] ~= item.id then
      local tail = tails[chain] or {}
      tails[chain] = tail
      tail[#tail + 1], tail[#tail + 2] = item.score, item.id
      blocked[#blocked + 1], blocked[#blocked + 2] = item.score, item.id
    else
      ready[#ready + 1] = item
      if chain and not heads[chain] then
        heads[chain] = item.id
        fresh[#fresh + 1], fresh[#fresh + 2] = chain, item.id
      end
    end
  end
  for chain, tail in pairs(tails) do
    call('ZADD', key('tail:' .. chain), unpack(tail))
  end
  if #blocked > 0 then
    call('ZADD', key('blocked'), unpack(blocked))
  end
  if #fresh > 0 then
    call('HSET', key('heads'), unpack(fresh))
  end
  return ready
end

--- The lane of the job that is next in a chain after `item`.
local function next_lane(item, id)
  if item.chain ~= WHOLE_QUEUE and item.lane and item.lane ~= COMMON then   -- which jobs join one by one
    return item.lane
  end
  return (lane_in(call('HGET', key('specs'), id)))
end

--- Jobs {id, lane, chain} give up their turns. Returns the items that are ready in their place.
local function pass_turns(items)
  local chains, ready, heads, unblocked, ended = {}, {}, {}, {}, {}
  for i, item in ipairs(items) do
    chains[i] = item.chain
  end
  for i, head in ipairs(call('HMGET', key('heads'), unpack(chains))) do
    local item = items[i]
    if head == item.id then
      local first = call('ZPOPMIN', key('tail:' .. item.chain))
      if first[1] then
        heads[#heads + 1], heads[#heads + 2] = item.chain, first[1]
        unblocked[#unblocked + 1] = first[1]
        ready[#ready + 1] = { id = first[1], score = first[2], chain = item.chain, lane = next_lane(item, first[1]) }
      else
        ended[#ended + 1] = item.chain
      end
    end
  end
  if #ready > 0 then
    call('HSET', key('heads'), unpack(heads))
    call('ZREM', key('blocked'), unpack(unblocked))
  end
  if #ended > 0 then
    call('HDEL', key('heads'), unpack(ended))
  end
  return ready
end
