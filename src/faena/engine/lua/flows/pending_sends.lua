--- What is to be done in other queues for flows and groups of this one.
-- states   none
-- keys     pending_sends zset · flow, group hashes
--@args     start, most
--          start is a place in the list, 0 for the first
-- returns  now, then for each: its name · queue · job · what it is made of (packed; '' when it is to be
--          cancelled) · numbers of its parents, or (what · number) … of its group
-- One whose flow is gone has neither queue nor job. One that is not yet due has no queue: a job is not
-- cancelled before it was sent.
--@flags no-writes
--@include now, keys, safe_read, flow_graph, group_record
local COUNTS = { 'total', 'completed', 'dead', 'cancelled' }
local LARGEST = 1048576   -- bytes, after which the rest waits for the next call
local GONE = { '', '', '', {} }

--- What is packed begins with its queue.
local function queue_in(packed)
  local queue = (unpacked(packed) or {})[1]
  return type(queue) == 'string' and queue or nil
end

local function counts_of(group)
  local list = {}
  for _, name in ipairs(COUNTS) do
    list[#list + 1] = name
    list[#list + 1] = count_in(call('HGET', group_key(group), name), 0)
  end
  return list
end

local function callback(group, name, job)
  local made = call('HGET', group_key(group), 'on:' .. name)
  local queue = made and queue_in(made)
  return queue and { queue, job, made, counts_of(group) } or GONE
end

local function send_of_node(pending_send, what, flow, number, job)
  local found = call('HMGET', flow_key(flow), 'v:' .. number, 'j:' .. number, 'p:' .. number)
  if not (found[1] and found[2]) then
    return GONE
  end
  local queue = queue_in(found[1])
  if not queue then
    return GONE
  elseif what == 'f' then
    return { queue, job, found[2], found[3] and unpacked(found[3]) or {} }
  end
  local is_sent = not call('ZSCORE', key('pending_sends'), 'f' .. string.sub(pending_send, 2))
  return { is_sent and queue or '', job, '', {} }
end

local list, size = { whole(now) }, 0
for _, pending_send in ipairs(call('ZRANGE', key('pending_sends'), start, start + most - 1)) do
  local what, which, name, job = string.match(pending_send, '^(%w):([^:]+):([^:]+):(.+)$')
  local found = GONE   -- also one that cannot be read
  if what then
    found = what == 'g' and callback(which, name, job) or send_of_node(pending_send, what, which, name, job)
  end
  list[#list + 1] = { pending_send, unpack(found) }
  size = size + #found[3]
  if size > LARGEST then
    break
  end
end
return list
