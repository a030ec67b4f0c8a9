--- How severe an alert is: 0 not at all, 1 a warning, 2 critical. It rises when a value was beyond a bound for some time;
-- it falls at once below a lower bound, or when the value was between the two for some time.
--   alerts   <rule> <subject> -> packed: l level, w, c since when the value is beyond the two bounds, b since when it is
--            below the one of the level (0: it is not), s since when it fires, t the level that was told last, at ta, tc
--            the channels that were told, x the last value as a text, o who judged it last, at a
-- A reading is { rule, subject, value, text, bound of a warning, critical bound, the lower ones of both (-1: none),
-- sustained_us, clear_after_us, repeat_us, channels of warnings, channels of critical alerts }.
--@include safe_read, keys
--@exports reading_of, quiet_reading, alert_in, judge_alert, keep_alert
local FIELDS = { 'rule', 'subject', 'value', 'text', 'warning', 'critical', 'ease_warning', 'ease_critical', 'sustained_us',
                 'clear_after_us', 'repeat_us', 'channels', 'critical_channels' }
local KINDS = { rule = 'string', subject = 'string', text = 'string', channels = 'table', critical_channels = 'table' }
local NUMBERS = { 'l', 'w', 'c', 'b', 's', 't', 'ta', 'a' }

local function reading_of(list)
  local reading = {}
  for i, field in ipairs(FIELDS) do
    local value = type(list) == 'table' and list[i]
    if type(value) ~= (KINDS[field] or 'number') then
      return nil
    end
    reading[field] = value
  end
  return reading
end

--- Of an alert that there is nothing to say of any more.
local function quiet_reading(about)
  local rule, subject = string.match(about, '^(%S+) (.*)$')
  return { rule = rule or about, subject = subject or '', value = 0, text = 'not there any more', warning = -1, critical = -1, ease_warning = -1,
           ease_critical = -1, sustained_us = 0, clear_after_us = 0, repeat_us = 0, channels = {}, critical_channels = {} }
end

--- An alert as it is stored; a new one without.
local function alert_in(packed)
  local alert = packed and unpacked(packed) or {}
  for _, field in ipairs(NUMBERS) do
    alert[field] = number_in(alert[field], 0)
  end
  alert.x = type(alert.x) == 'string' and alert.x or ''
  alert.o = type(alert.o) == 'string' and alert.o or ''
  alert.tc = type(alert.tc) == 'table' and alert.tc or {}
  return alert
end

--- Since when the value is beyond a bound.
local function beyond_since(since, bound, value, now)
  if bound < 0 or value < bound then
    return 0
  end
  return since > 0 and math.min(since, now) or now
end

--- The level whose lower bound still holds the alert.
local function held_level(level, reading)
  if level == 2 and reading.ease_critical >= 0 and reading.value >= reading.ease_critical then
    return 2
  end
  return reading.ease_warning >= 0 and reading.value >= reading.ease_warning and 1 or 0
end

--- The level of an alert whose value is below the bound of the one it has.
local function fallen_level(alert, level, reading, now)
  local low = math.max(level, math.min(alert.l, held_level(alert.l, reading)))
  if low < alert.l then
    alert.b = 0
    return low
  end
  alert.b = alert.b > 0 and math.min(alert.b, now) or now
  if now - alert.b < reading.clear_after_us then
    return alert.l
  end
  alert.b = 0
  return level
end

local function judge_alert(alert, reading, now)
  alert.w = beyond_since(alert.w, reading.warning, reading.value, now)
  alert.c = beyond_since(alert.c, reading.critical, reading.value, now)
  alert.x = reading.text
  local level = alert.c > 0 and 2 or alert.w > 0 and 1 or 0
  local risen = 0
  if alert.c > 0 and now - alert.c >= reading.sustained_us then
    risen = 2
  elseif alert.w > 0 and now - alert.w >= reading.sustained_us then
    risen = 1
  end
  if risen > alert.l then
    alert.s = alert.l == 0 and now or alert.s
    alert.l, alert.b = risen, 0
  elseif level >= alert.l then
    alert.b = 0
  else
    alert.l = fallen_level(alert, level, reading, now)
  end
end

--- Store it while there is something to remember.
local function keep_alert(about, alert)
  if alert.l == 0 and alert.t == 0 and alert.w == 0 and alert.c == 0 then
    call('HDEL', key('alerts'), about)
  else
    call('HSET', key('alerts'), about, cmsgpack.pack(alert))
  end
end
