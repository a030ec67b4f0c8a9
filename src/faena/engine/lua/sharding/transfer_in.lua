--- Take in jobs that come from another shard, once.
-- states   move_in   none -> ready | delayed | blocked | completed | dead | cancelled : from another shard
--          wait      ready -> blocked : an earlier job of its order has moved in
-- keys     all of a job · transfer_in hash
--@args     shard, number, jobs
--          number of the batch; jobs are packed
-- returns  how many came (0 when the batch was here before)
-- refuses  UNCONFIGURED
--@arrivals
--@include now, queue_settings, job_state, retained_bytes, wake_worker, event_and_stats, job_snapshot, dead_snapshot
--@include enter_shard, spec_line, keys, tenant_override
local number, conf = tonumber(number), conf_now()
if number < (conf.epoch or 0) * EPOCH then
  return { 0 }   -- it was sent for an earlier change, which is over: it has been here
elseif not conf.version then
  return { 'UNCONFIGURED' }
elseif tonumber(call('HGET', key('transfer_in'), shard) or 0) >= number then
  return { 0 }
end

local ids = {}
for _, job in ipairs(cmsgpack.unpack(jobs)) do
  local lane, chain = lane_in(job[SPEC])
  if call('HEXISTS', key('specs'), job[ID]) == 0 then
    unpack_job(job)
    ids[#ids + 1] = job[ID]
    if lane and job[HELD] and job[HELD] > now then   -- a provider has asked for it where the job comes from
      extend_lane_hold(lane, job[HELD], now)
    end
    if is_waiting(job[STATE]) then
      enter_waiting(job, conf, now, { id = job[ID], score = job[SCORE], lane = lane, chain = chain })
    else
      call('ZADD', key(job[STATE]), job[SCORE], job[ID])
      if job[DESK] then
        unpack_desk(job[ID], job[SCORE], job[DESK])
      end
      if conf[job[STATE] .. '_bytes'] then
        add_bytes(job[STATE], { job[ID] }, #job[RESULT], tonumber(job[SCORE]))
      end
    end
  end
end
call('HSET', key('transfer_in'), shard, number)
call('HINCRBY', key('clock'), 'moved_in', #ids)
wake_worker()
record_event('moved_in', ids)
return { #ids }
