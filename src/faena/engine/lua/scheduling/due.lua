--- Read schedules: those that are due, or some by their names.
-- states   none
-- keys     schedules hash · schedule_due zset
--@args     verb, skip?, most?, name...
--          verb due (skip the first, at most so many; names that must be there) | read (names)
-- returns  due: now · when the next one after these is due ('' for never) · (name · due · record) … ·
--          names that are missing
--          read: now · for each record ('' for none) · due ('' for never)
--@flags no-writes
--@include now, keys
local schedules, due = key('schedules'), key('schedule_due')

local function read()
  local answers = { now }
  for i = first_name, #ARGV do
    answers[#answers + 1] = call('HGET', schedules, ARGV[i]) or ''
    answers[#answers + 1] = call('ZSCORE', due, ARGV[i]) or ''
  end
  return answers
end

local function look(skip, most)
  local found, missing = {}, {}
  local first = call('ZRANGE', due, skip, skip + most, 'WITHSCORES')   -- one more than wanted: the next
  local next_at = ''
  for i = 1, #first, 2 do
    if i > 2 * most or tonumber(first[i + 1]) > now then
      next_at = first[i + 1]
      break
    end
    found[#found + 1], found[#found + 2] = first[i], first[i + 1]
    found[#found + 1] = call('HGET', schedules, first[i]) or ''
  end
  for i = first_name, #ARGV do
    if call('HEXISTS', schedules, ARGV[i]) == 0 then
      missing[#missing + 1] = ARGV[i]
    end
  end
  return { now, next_at, found, missing }
end

if verb == 'read' then
  return read()
end
return look(tonumber(skip), tonumber(most))
