--- Everything known of some jobs.
-- states   none
-- keys     all zsets · specs, marks, leases, results, info hashes
-- args     id …
-- returns  for each: {} when unknown, else state · score · spec · mark (packed or '') · lease record
--          or '' · result or '' · info as name, value …
--@flags no-writes
--@include state, mark
local answers = {}
for i, id in ipairs(ARGV) do
  local state, score = state_of(id)
  answers[i] = {}
  if state then
    local mark = call('HGET', key('marks'), id)
    answers[i] = { state, score, call('HGET', key('specs'), id) or '', mark or '',
      call('HGET', key('leases'), id) or '', call('HGET', key('results'), id) or '',
      mark and cmsgpack.unpack(mark).i and call('HGETALL', key('info:' .. id)) or {} }
  end
end
return answers
