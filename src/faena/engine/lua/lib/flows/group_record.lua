--- Groups: any number of jobs that are counted as they end, as `group:<id>`:
--   total       how many there are, once that is known
--   completed · dead · cancelled   how many have ended so
--   on:<name>   the job that is sent when all have ended (`complete`), all well (`success`)
--   s:<name>    what became of it: sent, then how it ended
--@include keys, outbox, event_and_stats
--@exports group_key, settle_group, count_members, callback_ended
local KEPT_S = 7 * 86400
local KEPT = 10000   -- groups that have ended and are listed
local ENDS = { 'completed', 'dead', 'cancelled' }

local function group_key(group)
  return key('group:' .. group)
end

--- Send a callback, once; what it is made of ends with its id.
local function call_back(group, name, now)
  local made = call('HGET', group_key(group), 'on:' .. name)
  if made and call('HSETNX', group_key(group), 's:' .. name, 'sent') == 1 then
    local job = cmsgpack.unpack(made)[5]
    call('ZADD', key('pending_sends'), now, 'g:' .. group .. ':' .. name .. ':' .. job)
    context.has_messages = true
  end
end

--- The list of groups that have ended takes in one more, and lets go of the oldest.
local function list_ended(group, now)
  call('ZREM', key('groups'), group)
  call('ZREMRANGEBYSCORE', key('groups_done'), '-inf', now - KEPT_S * 1000000)
  if call('ZCARD', key('groups_done')) >= KEPT then
    call('ZREM', key('groups_done'), call('ZRANGE', key('groups_done'), 0, 0)[1])
  end
  call('ZADD', key('groups_done'), now, group)
  call('EXPIRE', key('groups_done'), KEPT_S)
end

--- See whether all members have ended.
local function settle_group(group, now)
  local found = call('HMGET', group_key(group), 'total', unpack(ENDS))
  local total, ended = tonumber(found[1]), 0
  for i = 1, #ENDS do
    ended = ended + tonumber(found[i + 1] or 0)
  end
  if not total or ended < total then
    return
  end
  call_back(group, 'complete', now)
  if tonumber(found[2] or 0) == total then
    call_back(group, 'success', now)
  end
  if call('HSETNX', group_key(group), 'finished', whole(now)) == 1 then
    list_ended(group, now)
    call('EXPIRE', group_key(group), KEPT_S)
    record_event('group_finished', { group })
  end
end

local function count_members(group, changes, now)
  if call('EXISTS', group_key(group)) == 1 then   -- it may have been removed, long after its end
    for state, number in pairs(changes) do
      call('HINCRBY', group_key(group), state, number)
    end
    settle_group(group, now)
  end
end

local function callback_ended(group, name, state, job)
  call('ZREM', key('pending_sends'), 'g:' .. group .. ':' .. name .. ':' .. job)
  if call('EXISTS', group_key(group)) == 1 then
    call('HSET', group_key(group), 's:' .. name, state)
  end
end
