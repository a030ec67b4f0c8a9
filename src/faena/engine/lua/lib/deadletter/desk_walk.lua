--- Going through the desk in order of death, from a position that may not be there any more.
-- A filter: `status`, `task`, `tenant`, `error`, `print`, each '' for any.
--@include keys, dead_index, paging
--@exports walk_desk
local FILTERS = { 'status', 'task', 'tenant', 'error', 'print' }

--- The smallest set that has all that a filter asks for.
local function smallest(filter)
  local best, size = key('dead'), call('ZCARD', key('dead'))
  for _, name in ipairs(FILTERS) do
    local value = filter[name] or ''
    local set = index_key(name .. ':' .. value)
    local number = value ~= '' and call('ZCARD', set) or size
    if number < size then
      best, size = set, number
    end
  end
  return best
end

--- Where to begin when no position is given: at the bound of the deaths that count.
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

--- Look at up to `size` jobs behind a position, {score, id, is_reverse, least, most}. Calls `take(id, score,
-- record)` for those that fit, until it answers false: a caller that wants `wanted` of them reads no more than
-- those, unless many do not fit. Returns the position it has come to, and whether nothing is left behind it.
local function walk_desk(filter, from, size, wanted, take)
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
