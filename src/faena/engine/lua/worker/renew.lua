--- Extend a worker's leases on one queue.
-- states   none
-- keys     leases, marks hashes · running zset
--@args     least_us, id lease...
--          leases last least_us at least
-- returns  lost ids · ids whose cancellation was asked for
-- refuses  UNCONFIGURED
--@flags allow-oom
--@sure
--@include now, check_arguments, queue_settings, job_metadata, lease_record, keys
local conf = conf_now()
if not conf.version then
  return { 'UNCONFIGURED' }
end
local ids, ends_at = {}, now + math.max(conf.lease_us, instant_of(least_us, 'least_us'))
check((#ARGV - first_id) % 2 == 1, 'leases')
for i = first_id, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
local records = #ids > 0 and call('HMGET', key('leases'), unpack(ids)) or {}
local marks = marks_of(ids)
local lost, cancelled, renewed = {}, {}, {}
for i, id in ipairs(ids) do
  if not holds_lease(records[i], ARGV[first_id + 2 * i - 1]) then
    lost[#lost + 1] = id
  else
    renewed[#renewed + 1] = ends_at
    renewed[#renewed + 1] = id
    if marks[id] and marks[id].c then
      cancelled[#cancelled + 1] = id
    end
  end
end
if #renewed > 0 then
  call('ZADD', key('running'), unpack(renewed))
end
return { lost, cancelled }
