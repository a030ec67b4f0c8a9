--- Jobs that have left this shard and may not have come to another yet: those in `transfer_out`.
-- states   none
-- keys     transfer_out hash
--@args     id...
--          of those that more is wanted of
-- returns  for each: id · state · score · packed record of the desk or '' · {} or, if it is wanted, what `look` says
-- A batch stays in `transfer_out` until it is known to have come: what another shard says of a job counts more.
--@flags no-writes
--@include keys, queue_settings, job_snapshot, enqueued_at
local wanted, found, conf = {}, {}, conf_now()

--- What `look` says of a job.
local function look_at(job)
  local mark = job[MARK] ~= '' and cmsgpack.unpack(job[MARK]) or {}
  return { job[STATE], job[SCORE], job[SPEC], job[MARK], '', job[RESULT], job[INFO],
           told_enqueued(job[SPEC], mark, job[STATE], job[SCORE], conf) }
end

for i = first_id, #ARGV do
  wanted[ARGV[i]] = true
end
local batches = call('HGETALL', key('transfer_out'))
for i = 2, #batches, 2 do
  for _, job in ipairs(cmsgpack.unpack(string.match(batches[i], '^%d+ (.*)$'))) do
    found[#found + 1] = { job[ID], job[STATE], job[SCORE], job[DESK] and job[DESK][1] or '',
                          wanted[job[ID]] and look_at(job) or {} }
  end
end
return found
