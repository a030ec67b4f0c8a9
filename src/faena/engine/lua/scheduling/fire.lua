--- Fire a schedule: take its job in and move on to the next instant, in one step.
-- states   enqueue   none -> ready | delayed | blocked : an instant of a schedule has come
--          replace   blocked -> none : the next instant takes the place of one that waits for the job before it
-- keys     schedules, fired hashes · schedule_due zset · those of enqueue
--@args     caller, id_of_call, epoch?, name, instant, id, spec?, missed?, number, expected?, version?, record?, due?
--          caller of this call only; epoch of the shards; spec '' for no job; missed are ids, number how many there
--          were; expected is the version that was read, '' where the record is at another shard
-- returns  CREATED · DUPLICATE (the id is here) · SKIPPED (another of its jobs lives) · NOTHING (no job)
--          · OVERLOADED retry_us (nothing has changed)
-- refuses  STALE (it was fired or changed meanwhile) · TAKEN (this shard has had the instant) ·
--          UNCONFIGURED · MOVED
-- Where the record is at another shard, this one remembers the last instant it was asked for: instants
-- only grow, so a caller that comes late is refused for ever.
--@arrivals
--@include now, queue_settings, replay, event_and_stats, enqueue_batch, enqueue_unique, schedule_record, spec_line
--@include keys, run_once
local answered = replayed(caller, id_of_call)
if answered then
  return cmsgpack.unpack(answered)
elseif expected ~= '' and version_of(name) ~= expected then
  return { 'STALE' }
elseif expected == '' and tonumber(call('HGET', key('fired'), name) or 0) >= tonumber(instant) then
  return { 'TAKEN' }
end
local conf = conf_now()
if spec ~= '' and conf.epoch and conf.epoch > (tonumber(epoch) or 0) then
  return { 'MOVED' }
elseif not conf.version then
  return { 'UNCONFIGURED' }
end

--- What became of the job.
local function take_in(intake)
  local known, facts = call('HGET', key('specs'), id), facts_in(spec)
  if known then
    return 'DUPLICATE'
  elseif refused(intake, 1, facts.lane) then
    return 'OVERLOADED', intake.answers[#intake.answers - 1]
  elseif facts.unique then
    enqueue_unique(intake, 1, id, spec, facts)
    for i = 2, #intake.answers, 4 do
      if intake.answers[i + 1] == 'DUPLICATE' then
        return 'SKIPPED'
      end
    end
  else
    add(intake, id, spec, tonumber(facts.delay), facts)
  end
  return 'CREATED'
end

local intake = new_intake(conf, now)
local outcome, retry_us = 'NOTHING', nil
if spec ~= '' then
  outcome, retry_us = take_in(intake)
end
if outcome == 'OVERLOADED' then
  record_event('schedule_refused', { id })
  return { outcome, retry_us }
end
close_intake(intake)
if expected ~= '' then
  save_schedule(name, version, record, due)
else
  call('HSET', key('fired'), name, instant)
  call('PERSIST', key('fired'))   -- of a shard that was retired it is kept for a day: see retire.lua
end
record_event(outcome == 'CREATED' and 'schedule_fired' or 'schedule_skipped', spec ~= '' and { id } or {})
if missed ~= '' then
  record_event('schedule_missed', { missed })
  count('schedule_missed', tonumber(number) - 1)
end
return end_once(caller, id_of_call, { outcome })
