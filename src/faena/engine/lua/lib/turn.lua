--- What an exchange does around its claim: prune, look ahead, answer again.
--@include key, prune, gate, claim, wake, settle
local PRUNE_EVERY_US = 1000000

--- Counts are kept at every call, ages once a second.
local function prune_all(conf, now, slice, sweep)
  local due = tonumber(call('HGET', key('clock'), 'prune_at') or 0) <= now or sweep
  if not due then
    if conf.completed_count and call('ZCARD', key('completed')) > conf.completed_count then
      prune('completed', conf, now, slice)
    end
    return
  end
  local most = 0
  for _, state in ipairs({ 'completed', 'dead', 'cancelled' }) do
    most = math.max(most, prune(state, conf, now, slice))
  end
  call('HSET', key('clock'), 'prune_at', most < slice and now + PRUNE_EVERY_US or now)
end

local function first_score(set)
  return tonumber(call('ZRANGE', key(set), 0, 0, 'WITHSCORES')[2])
end

--- Whether more could be claimed at once, and the next instant at which anything can change.
-- The marker is armed when another worker could claim what this one left.
local function look_ahead(want, claimed, gate, opens_at, now)
  local waiting = call('ZCARD', key('ready')) > 0
  local more = waiting and gate == ''
  if more then
    arm_wake()
  end
  local next_at = math.min(first_score('delayed') or math.huge, first_score('running') or math.huge,
    waiting and opens_at or math.huge)
  return (more and claimed == want) and 1 or 0, next_at == math.huge and 0 or math.max(next_at, now)
end

--- Workers of the queue, by the instant they are presumed gone.
local function sign_in(worker, now, conf)
  call('ZADD', key('workers'), now + 2 * conf.lease_us, worker)
  call('ZREMRANGEBYSCORE', key('workers'), '-inf', now)
end

--- The answer of a call that arrives again: only leases that still hold are handed out.
local function repeat_answer(answer, lease, now)
  local lost, ids, next_at, gate, more = unpack(answer)
  local popped, kept = {}, {}
  local records = #ids > 0 and call('HMGET', key('leases'), unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if holds_lease(records[i], lease) then
      kept[#kept + 1] = id
      popped[#popped + 1] = id
      popped[#popped + 1] = score_in(records[i])
    end
  end
  local specs = #kept > 0 and call('HMGET', key('specs'), unpack(kept)) or {}
  return { now, next_at, gate, more, lost, popped, specs, facts_of(kept) }
end
