--- Everything known of some jobs.
-- states   none
-- keys     all zsets · specs, marks, leases, results, info hashes
--@args     id...
-- returns  for each: {} when unknown, else state · score · spec · mark (packed or '') · lease record
--          or '' · result or '' · info as name, value … · when it was taken in, or '' where nothing says so
--@flags no-writes
--@include queue_settings, job_state, lease_record, enqueued_at, keys
local answers, conf = {}, conf_now()
for i = first_id, #ARGV do
  local id, known = ARGV[i], {}
  local state, score = state_of(id)
  if state then
    local packed, record = call('HGET', key('marks'), id), call('HGET', key('leases'), id)
    local mark, spec = packed and cmsgpack.unpack(packed) or {}, call('HGET', key('specs'), id)
    known = { state, score, spec or '', packed or '', record or '', call('HGET', key('results'), id) or '',
      mark.i and call('HGETALL', key('info:' .. id)) or {},
      told_enqueued(spec, mark, state, record and score_in(record) or score, conf) }
  end
  answers[#answers + 1] = known
end
return answers
