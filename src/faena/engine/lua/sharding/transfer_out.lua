--- Send jobs to another shard: they leave their places here and lie in `transfer_out` until it has them.
-- states   move_out  ready | delayed | blocked | completed | dead | cancelled -> none : to another shard
--          unblock   blocked -> ready : what it waited for is over
-- keys     all of a job · transfer_out, late, moves hashes
--@args     shard, arrived, epoch, id...
--          arrived is the number of the last batch that has arrived there; epoch of the change, 0 for any
-- returns  number · packed jobs of the batch that must be taken there, 0 and '' for none · how many of
--          the ids were looked at (none while an earlier batch is under way)
-- refuses  STALE (the change is over)
-- Jobs that run, or wait for one that runs, are noted in `late`; others take their followers along.
--@flags allow-oom
--@arrivals
--@include now, queue_settings, job_state, event_and_stats, spec_line, job_snapshot, leave_shard, keys
local MOST_BYTES = 4 * 1024 * 1024
local arrived, epoch = tonumber(arrived), tonumber(epoch)
local conf = conf_now()
if epoch > 0 and epoch ~= conf.epoch then
  return { 'STALE', '', 0 }
end

local under_way = call('HGET', key('transfer_out'), shard)
local number, packed = string.match(under_way or '', '^(%d+) (.*)$')
if number and tonumber(number) > arrived then
  return { tonumber(number), packed, 0 }
elseif number then
  call('HDEL', key('transfer_out'), shard)
end

local batch, ids, bytes, looked = {}, {}, 0, 0
for i = first_id, #ARGV do
  local id, spec = ARGV[i], call('HGET', key('specs'), ARGV[i])
  local state, score = state_of(id)
  local lane = spec and lane_in(spec)
  bytes = bytes + #(spec or '')
  if bytes > MOST_BYTES and #batch > 0 then
    break
  end
  looked = looked + 1
  if not state or not lane or not may_leave(state, lane, epoch) then
    call('HDEL', key('late'), id)   -- who waits for the late ones must not wait for this one
  elseif must_stay(id, state, spec) then
    call('HSET', key('late'), id, lane)
  else
    send(batch, id, spec, state, score, conf, now)
  end
end
if #batch == 0 then
  return { 0, '', looked }
end
for i, job in ipairs(batch) do
  ids[i] = job[ID]
end
-- Numbers grow, also over a shard that was retired and is there again: its epoch is a later one.
number = math.max(tonumber(call('HGET', key('clock'), 'batches') or 0), (conf.epoch or 0) * EPOCH) + 1
packed = cmsgpack.pack(batch)
call('HSET', key('clock'), 'batches', whole(number))
call('HSET', key('transfer_out'), shard, whole(number) .. ' ' .. packed)
call('HINCRBY', key('clock'), 'removed', -#batch)
call('HINCRBY', key('clock'), 'moved_out', #batch)
record_event('moved_out', ids)
return { number, packed, looked }
