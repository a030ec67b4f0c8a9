--- Look through the jobs of some states for those that may fit a search, from where the last call has come to.
-- states   none
-- keys     zsets of the states · specs, info hashes
--@args     states, looked, wanted, state?, score?, id?, since?, until_at?, prefix?, word?, error?, needle...
--          states in their order, by commas · looked and wanted at most · state, score and id: the place, '' from
--          the start · since and until_at: of jobs that have ended, when · prefix of the id · word in the id, in what stands
--          before the payload, or in the last error; error in the last error: both in small letters · needle in the spec
-- returns  state · score · id (the place it has come to, '' at the end) · jobs looked at · (id · state · score) …
-- What it finds may fit: the caller compares the jobs themselves. The newest come first; of running jobs, whose
-- leases are renewed, those whose lease ends first.
--@flags no-writes
--@include keys, paging, safe_read
local PAGE = 200
local FRONT = 4096          -- bytes of a spec in which a word is looked for
local READ_AT_MOST = 262144   -- bytes of specs and errors that one call reads
local ENDED = { completed = true, dead = true, cancelled = true }
local left, most = count_in(looked, 0), count_in(wanted, 0)
local first_at, last_at = number_in(since, -math.huge), number_in(until_at, math.huge)
local found, read = {}, 0

local function spec_of(job)
  local spec = call('HGET', key('specs'), job) or ''
  read = read + #spec
  return spec
end

--- The last error of a job, in small letters, or ''.
local function error_of(job)
  local info = key('info:' .. job)
  local number = call('HGET', info, 'errors')
  local text = number and call('HGET', info, 'error:' .. number) or ''
  read = read + #text
  return string.lower(text)
end

local function has_word(job, spec, text)
  return word == '' or string.find(string.lower(job), word, 1, true)
    or string.find(string.lower(string.sub(spec, 1, FRONT)), word, 1, true) or string.find(text, word, 1, true)
end

local function may_fit(job)
  if string.sub(job, 1, #prefix) ~= prefix then
    return false
  end
  local spec = (#ARGV >= first_needle or word ~= '') and spec_of(job) or ''
  for i = first_needle, #ARGV do
    if not string.find(spec, ARGV[i], 1, true) then
      return false
    end
  end
  local text = (error ~= '' or word ~= '') and error_of(job) or ''
  return string.find(text, error, 1, true) and has_word(job, spec, text)
end

--- Where to begin in a state: behind the place, or at the last instant that counts.
local function begin_in(name)
  local from = { is_reverse = name ~= 'running', id = '', score = '' }
  if name == state and id ~= '' then
    from.id, from.score = id, score
  elseif ENDED[name] and last_at < math.huge then
    from.id, from.score = '\255', until_at
  end
  return from
end

--- Look at one job; false if it and all behind it ended too early.
local function look_at(name, job, at)
  if ENDED[name] and tonumber(at) < first_at then
    return false
  end
  left = left - 1
  if may_fit(job) then
    found[#found + 1], found[#found + 2], found[#found + 3] = job, name, at
  end
  return true
end

--- Go through a state; returns whether nothing is left there.
local function go_through(name, from)
  while left > 0 and #found < 3 * most and read < READ_AT_MOST do
    local size = math.min(PAGE, left)
    local page = page_of(key(name), passed_in(key(name), from), size, from.is_reverse)
    for i = 1, #page, 2 do
      if #found >= 3 * most or read >= READ_AT_MOST then
        return false
      elseif not look_at(name, page[i], page[i + 1]) then
        return true
      end
      from.id, from.score = page[i], page[i + 1]
    end
    if #page < 2 * size then
      return true
    end
  end
  return false
end

local is_reached = state == ''
for name in string.gmatch(states, '%w+') do
  is_reached = is_reached or name == state
  local from = is_reached and begin_in(name)
  if from and not go_through(name, from) then
    return { name, from.score, from.id, count_in(looked, 0) - left, found }
  end
end
return { '', '', '', count_in(looked, 0) - left, found }
