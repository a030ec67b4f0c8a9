--- Going through the desk in order of death, from a place that may not be there any more.
-- A filter: `status`, `task`, `tenant`, `error`, `print`, each '' for any.
--@include key, shelf
local FILTERS = { 'status', 'task', 'tenant', 'error', 'print' }

--- The smallest set that has all that a filter asks for.
local function smallest(filter)
  local best, size = key('dead'), call('ZCARD', key('dead'))
  for _, name in ipairs(FILTERS) do
    local value = filter[name] or ''
    local set = shelf(name .. ':' .. value)
    local number = value ~= '' and call('ZCARD', set) or size
    if number < size then
      best, size = set, number
    end
  end
  return best
end

--- Whether one id stands before another of the same instant: by bytes, as the server sorts them.
local function stands_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

--- How many of `set` stand before the place (score, id), and whether that place is taken.
local function rank_in(set, score, id)
  local rank = call('ZSCORE', set, id) == score and call('ZRANK', set, id)
  if rank then
    return rank, true
  end
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if stands_before(call('ZRANGE', set, middle, middle)[1], id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low, false
end

--- How many jobs of `set` are passed before those behind a place.
local function passed_in(set, from)
  if from.id == '' then
    return 0
  end
  local rank, is_taken = rank_in(set, from.score, from.id)
  return from.is_reverse and call('ZCARD', set) - rank or rank + (is_taken and 1 or 0)
end

--- (id · score) … of `size` jobs after those that are passed; oldest first, or newest first.
local function page_of(set, passed, size, is_reverse)
  if is_reverse then
    return call('ZRANGE', set, passed, passed + size - 1, 'REV', 'WITHSCORES')
  end
  return call('ZRANGE', set, passed, passed + size - 1, 'WITHSCORES')
end

--- Where to begin when no place is given: at the bound of the deaths that count.
local function begin_at(from)
  if from.id == '' and from.is_reverse and from.most < math.huge then
    from.score, from.id = whole(from.most), '\255'
  elseif from.id == '' and not from.is_reverse and from.least > 0 then
    from.score, from.id = whole(from.least), '\1'
  end
end

local function fits(record, filter)
  local function asks(name, value, other)
    return filter[name] and filter[name] ~= '' and filter[name] ~= value and filter[name] ~= other
  end
  return record and not (asks('status', record.s) or asks('task', record.t) or asks('tenant', record.o)
    or asks('print', record.f) or asks('error', record.e, record.c))
end

local function every_second(page)
  local ids = {}
  for i = 1, #page, 2 do
    ids[#ids + 1] = page[i]
  end
  return ids
end

--- Look at up to `size` jobs behind a place, {score, id, is_reverse, least, most}. Calls `take(id, score,
-- record)` for those that fit, until it answers false: whoever wants `wanted` of them reads no more than
-- those, unless many do not fit. Returns the place it has come to, and whether nothing is left behind it.
local function walk(filter, from, size, wanted, take)
  local score, id = from.score, from.id
  begin_at(from)
  local set = smallest(filter)
  local passed, page = passed_in(set, from), wanted + 1
  while size > 0 do
    page = math.min(page, size)
    local found = page_of(set, passed, page, from.is_reverse)
    local ids = every_second(found)
    local records = records_of(ids)
    for i, job in ipairs(ids) do
      local at = tonumber(found[2 * i])
      if (from.is_reverse and at < from.least) or (not from.is_reverse and at > from.most) then
        return score, id, true
      end
      if at >= from.least and at <= from.most and fits(records[job], filter)
        and take(job, found[2 * i], records[job]) == false then
        return score, id, false
      end
      score, id = found[2 * i], job
    end
    if #ids < page then
      return score, id, true
    end
    passed, size, page = passed + page, size - page, 2 * page
  end
  return score, id, false
end
