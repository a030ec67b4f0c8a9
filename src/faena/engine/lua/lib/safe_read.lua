--- What is stored may be anything, also of another program: it is read so that no call can fail over it.
--@exports number_in, count_in, unpacked, keep_kinds, bump
--- A number out of a text, or a number; the default where it is none, or not finite.
local function number_in(value, default)
  local number = tonumber(value or nil)
  return number and number - number == 0 and number or default
end

--- The same, whole.
local function count_in(value, default)
  local number = number_in(value)
  return number and math.floor(number) or default
end

--- A packed table, or nil.
local function unpacked(packed)
  local is_read, value = pcall(cmsgpack.unpack, packed)
  return is_read and type(value) == 'table' and value or nil
end

--- Take out of a record what is not of its kind; a number is finite.
local function keep_kinds(record, kinds)
  for name, kind in pairs(kinds) do
    local value = record[name]
    if value ~= nil and (type(value) ~= kind or kind == 'number' and value - value ~= 0) then
      record[name] = nil
    end
  end
  return record
end

--- Add to a counter of a hash; one that is no number begins anew.
local function bump(hash, field, by)
  local is_done, number = pcall(call, 'HINCRBY', hash, field, by)
  if is_done then
    return number
  end
  number = math.max(0, math.min(count_in(by, 0), 2 ^ 53))
  call('HSET', hash, field, number)
  return number
end
