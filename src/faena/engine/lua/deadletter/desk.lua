--- A page of the dead-letter desk: dead jobs that a filter asks for, behind a place.
-- states   none
-- keys     dead, desk: zsets · desk hash
-- args     now · reverse 1|'' (newest first) · looked at most · wanted at most · after score · after id ('' from
--          the start) · died from · died to ('' for any) · status · task · tenant · error (name or code) ·
--          fingerprint ('' for any)
-- returns  score · id (where it has come to) · ended 1|0 · (id · score · packed record) …
--@flags no-writes
--@include desk_walk
local wanted, found = tonumber(ARGV[4]), {}
local from = { is_reverse = ARGV[2] == '1', score = ARGV[5], id = ARGV[6], least = tonumber(ARGV[7]) or 0,
               most = tonumber(ARGV[8]) or math.huge }
local filter = { status = ARGV[9], task = ARGV[10], tenant = ARGV[11], error = ARGV[12], print = ARGV[13] }
local score, id, is_over = walk(filter, from, tonumber(ARGV[3]), wanted, function(job, at, record)
  if #found == 3 * wanted then
    return false
  end
  found[#found + 1], found[#found + 2], found[#found + 3] = job, at, cmsgpack.pack(record)
end)
return { score, id, is_over and 1 or 0, found }
