--- Which settings no script could work with, or no operator can mean.
--@include keys
--@exports refused_settings
-- Without these no job can be placed or leased: they may be changed, not removed.
local NEEDED = { lease_us = true, max_deliveries = true, age_step_us = true, retry_boost = true }
-- Each shard has its part of these, which must not be nothing.
local SHARED = { max_running = true, hard = true }

local function is_enough(numbers)
  local shards = tonumber(call('HGET', key('conf'), 'shards') or 1)
  for number in numbers do
    if tonumber(number) > 0 and tonumber(number) < shards then
      return false
    end
  end
  return true
end

local function is_valid(name, value)
  if name == 'limits' or name == 'tenant_limits' or name == 'key_limits' or name == 'keyed' then
    return string.gsub(value .. ' ', '[1-9]%d*/[1-9]%d* ', '') == (value == '' and ' ' or '')
      and (name ~= 'limits' or is_enough(string.gmatch(value, '(%d+)/')))
      and (name ~= 'key_limits' or value == '' or tonumber(call('HGET', key('conf'), 'shards') or 1) == 1)
  elseif name == 'costs' or name == 'tenant_costs' then
    return string.gsub(value .. ' ', '[1-9]%d*/[1-9]%d*/[%l%d_]+ ', '') == (value == '' and ' ' or '')
      and (name ~= 'costs' or value == '' or tonumber(call('HGET', key('conf'), 'shards') or 1) == 1)
  elseif SHARED[name] and value ~= '' then
    return tonumber(value) and is_enough(string.gmatch(value, '%d+'))
  elseif name == 'version' or name == 'order' then
    return value ~= ''
  elseif string.find(name, '^hook_%l+:') then
    return true
  elseif string.find(name, '^cost:') then
    return string.gsub(value .. ',', '[%l%d_]+:[1-9]%d*,', '') == (value == '' and ',' or '')
  end
  return tonumber(value) or (value == '' and not NEEDED[name])
end

--- What an edit would have bounds say that contradict each other. A declaration is checked in code; one
-- that does not go with an older edit must not keep a program from starting.
local function contradiction(edits)
  for low, high in pairs({ soft = 'hard', tenant_soft = 'tenant_hard' }) do
    local known = call('HMGET', key('conf'), low, high)
    local soft, hard = edits[low] or known[1] or '', edits[high] or known[2] or ''
    local is_new = soft ~= (known[1] or '') or hard ~= (known[2] or '')
    if is_new and soft ~= '' and hard ~= '' and tonumber(soft) >= tonumber(hard) then
      return { 'CONTRADICTS', low, soft, high, hard }
    end
  end
end

--- The answer to settings, arguments from `first` on, that must not be written; nil when they may.
local function refused_settings(mode, first)
  local given = {}
  for i = first, mode == 'reset' and 0 or #ARGV, 2 do
    if not is_valid(ARGV[i], ARGV[i + 1]) then
      return { 'INVALID', ARGV[i] }
    end
    given[ARGV[i]] = ARGV[i + 1]
  end
  return mode == 'edit' and contradiction(given) or nil
end
