--- Begin, look at, take over, go on with, stop or resume a bulk action; no job is changed here.
-- states   none
-- keys     bulks hash
--@args     verb, id?, owner?, lease_us?, plan?, progress?
--          verb list | look | begin (with plan and progress) | take (for lease_us, if no other owner has it) | save
--          (progress, by its owner, who keeps it for lease_us) | end (the same, the last time) | stop | resume
-- returns  (id · packed record) … of those that are there afterwards; nothing where take, save or end is refused
--@flags allow-oom
--@include now, bulk_record, keys, check_arguments
local now, lasting = now_us(), instant_of(lease_us == '' and '0' or lease_us, 'lease_us')
if verb == 'list' then
  return call('HGETALL', key('bulks'))
end

local bulk = bulk_of(id)
local is_owner = bulk and bulk.owner == owner
if verb == 'begin' and not bulk then
  forget_bulks()
  bulk = { state = 'running', at = now, owner = '', lease_until = 0, plan = plan, progress = progress }
  save_bulk(id, bulk)
elseif bulk and verb == 'take' then
  if bulk.state ~= 'running' or not is_owner and bulk.lease_until > now then
    return {}
  end
  bulk.owner, bulk.lease_until = owner, now + lasting
  save_bulk(id, bulk)
elseif bulk and (verb == 'save' or verb == 'end') then
  if not is_owner then
    return {}
  end
  if verb == 'end' and bulk.state == 'running' then
    bulk.state, bulk.ended_at = 'done', now
  end
  bulk.progress, bulk.lease_until = progress, bulk.state == 'running' and now + lasting or 0
  save_bulk(id, bulk)
elseif bulk and verb == 'stop' and bulk.state == 'running' then
  bulk.state, bulk.ended_at = 'stopped', now
  save_bulk(id, bulk)
elseif bulk and verb == 'resume' and bulk.state == 'stopped' then
  bulk.state, bulk.ended_at = 'running', nil
  save_bulk(id, bulk)
end
if bulk and (verb == 'begin' or verb == 'resume') then
  publish('bulks', id)
end
return bulk and { id, call('HGET', key('bulks'), id) } or {}
