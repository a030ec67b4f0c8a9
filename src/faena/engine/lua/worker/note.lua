--- Write progress or log lines of a running job, under its lease.
-- states   none
-- keys     leases, marks, info hashes
--@args     id, lease, progress?, line...
-- returns  OK
-- refuses  LEASE_LOST
--@flags allow-oom
--@include keys, job_metadata, lease_record, errors_and_logs
if not holds_lease(call('HGET', key('leases'), id), lease) then
  return 'LEASE_LOST'
end
local mark = marks_of({ id })[id] or {}
if not mark.i then
  mark.i = 1
  save_mark(id, mark)
end
if progress ~= '' then
  call('HSET', key('info:' .. id), 'progress', progress)
end
for i = first_line, #ARGV do
  append_line(id, 'log', ARGV[i])
end
return 'OK'
