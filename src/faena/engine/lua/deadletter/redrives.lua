--- Begin, look at, go on with or end a redrive; nothing is retried here.
-- states   none
-- keys     redrives hash
--@args     verb, id?, record?
--          verb list | look | begin (with a packed record) | go (its canaries are well) | stop | fail | resume (with
--          other canaries, unless they were well) | rewind (look from the oldest on: jobs have moved)
-- returns  (id · packed record) … of those that are there afterwards
-- refuses  UNCONFIGURED
--@flags allow-oom
--@include now, queue_settings, redrive_record, keys
local conf = conf_now()
if verb == 'list' then
  return call('HGETALL', key('redrives'))
elseif verb == 'begin' and not conf.version then
  return { 'UNCONFIGURED' }
end

local redrive = redrive_of(id)
if verb == 'begin' and not redrive then
  forget_redrives()
  redrive = cmsgpack.unpack(record)
  redrive.state = redrive.canary > 0 and 'canary' or 'running'
  redrive.at, redrive.until_at = now, math.min(redrive.until_at or now, now)
  redrive.score, redrive.last, redrive.due_at, redrive.moved, redrive.died, redrive.first = '', '', 0, 0, 0, {}
  redrive.well = redrive.canary == 0
  save_redrive(id, redrive)
elseif redrive and verb == 'go' and redrive.state == 'canary' then
  redrive.state, redrive.well = 'running', true
  save_redrive(id, redrive)
elseif redrive and (verb == 'stop' or verb == 'fail') and is_under_way(redrive) then
  end_redrive(redrive, verb == 'stop' and 'stopped' or 'failed', now)
  save_redrive(id, redrive)
elseif redrive and verb == 'resume' and (redrive.state == 'stopped' or redrive.state == 'failed') then
  -- canaries must show that the fault is mended, unless they have shown it before; a record of an
  -- earlier version does not say that
  redrive.well = redrive.well or redrive.well == nil and redrive.moved > #redrive.first
  redrive.state, redrive.ended_at, redrive.died = redrive.well and 'running' or 'canary', nil, 0
  redrive.first = redrive.well and redrive.first or {}
  save_redrive(id, redrive)
elseif redrive and verb == 'rewind' then
  redrive.score, redrive.last = '', ''
  if redrive.state == 'done' then
    redrive.state, redrive.ended_at = 'running', nil
  end
  save_redrive(id, redrive)
end
if redrive and (verb == 'begin' or verb == 'resume') then
  publish('redrives', id)
end
return redrive and { id, call('HGET', key('redrives'), id) } or {}
