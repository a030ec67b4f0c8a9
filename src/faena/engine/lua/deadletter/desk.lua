--- A page of the dead-letter desk: dead jobs that a filter asks for, behind a position.
-- states   none
-- keys     dead, desk: zsets · desk hash
--@args     is_reverse?, looked, wanted, score?, id?, status?, task?, tenant?, error?, fingerprint?, died_from?
--@args     died_to?
--          is_reverse 1 for the newest first; looked and wanted at most; score and id of the place, '' from the start;
--          the others are the filter, '' for any; error is a name or a code
-- returns  score · id (where it has come to) · ended 1|0 · (id · score · packed record) …
--@flags no-writes
--@include desk_walk
local wanted, found = tonumber(wanted), {}
local from = { is_reverse = is_reverse == '1', score = score, id = id, least = tonumber(died_from) or 0,
               most = tonumber(died_to) or math.huge }
local filter = { status = status, task = task, tenant = tenant, error = error, print = fingerprint }
local score, id, is_over = walk_desk(filter, from, tonumber(looked), wanted, function(job, at, record)
  if #found == 3 * wanted then
    return false
  end
  found[#found + 1], found[#found + 2], found[#found + 3] = job, at, cmsgpack.pack(record)
end)
return { score, id, is_over and 1 or 0, found }
