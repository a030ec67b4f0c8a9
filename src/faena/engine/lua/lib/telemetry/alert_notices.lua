--- Who is told of alerts: what has changed since they were told last, one notice for each channel and severity. What
-- is silenced is told when its silence is over, if it is still so.
--   alert_silences   id -> packed: r rule, s subject (both may be empty), u until, a since, b by, y why
--   alert_notices    id -> packed: channel, severity, at, changes, each { kind, rule, subject, severity, since, text }
--   alert_history    the same changes, and whether they were silenced
--@include now, safe_read, keys
--@exports read_silences, silence_in, record_alert, tell_alert, write_notices, tell_silence
--@state alert_silences = {}
--@state alert_notices = {}   -- channel and severity -> changes
local SEVERITIES = { 'warning', 'critical' }
local MOST_NOTICES, HISTORY, EVENTS = 1000, 1000, 10000

local function silence_in(packed)
  local one = unpacked(packed) or {}
  return { r = tostring(one.r or ''), s = tostring(one.s or ''), u = number_in(one.u, 0), a = number_in(one.a, 0),
           b = tostring(one.b or ''), y = tostring(one.y or '') }
end

--- Those in force; what is over is removed.
local function read_silences()
  local flat = call('HGETALL', key('alert_silences'))
  for i = 1, #flat, 2 do
    local one = silence_in(flat[i + 1])
    if one.u > now_us() then
      table.insert(context.alert_silences, one)
    else
      call('HDEL', key('alert_silences'), flat[i])
    end
  end
end

local function is_silenced(rule, subject)
  for _, one in ipairs(context.alert_silences) do
    if (one.r == '' or one.r == rule) and (one.s == '' or one.s == subject) then
      return true
    end
  end
  return false
end

local function kind_of(level, was)
  if level == 0 then
    return 'resolved'
  elseif was == 0 then
    return 'firing'
  end
  return level > was and 'escalated' or level < was and 'eased' or 'repeated'
end

local function tell_alert_event(name, what, why, by)
  call('XADD', key('events'), 'MAXLEN', '~', EVENTS, '*', 'at', now_us(), 'by', by or '', name, what .. '\n' .. why)
end

--- A level has changed: it is told as an event, and remembered.
local function record_alert(about, alert, was)
  local rule, subject = string.match(about, '^(%S+) (.*)$')
  local kind, muted = kind_of(alert.l, was), is_silenced(rule, subject)
  tell_alert_event('alert_' .. kind, about, (SEVERITIES[math.max(alert.l, was)] or '') .. ': ' .. alert.x)
  call('XADD', key('alert_history'), 'MAXLEN', '~', HISTORY, '*', 'change', cmsgpack.pack({
    now_us(), kind, rule, subject, SEVERITIES[math.max(alert.l, was)], alert.s, alert.x, muted,
  }))
end

local function add_channels(list, more)
  local known = {}
  for _, name in ipairs(list) do
    known[name] = true
  end
  for _, name in ipairs(more) do
    if not known[name] then
      list[#list + 1] = name
    end
  end
end

--- Put into notices what has changed since it was told.
local function tell_alert(alert, reading)
  local now = now_us()
  local is_repeated = alert.l > 0 and reading.repeat_us > 0 and now - alert.ta >= reading.repeat_us
  if (alert.l == alert.t and not is_repeated) or is_silenced(reading.rule, reading.subject) then
    return
  elseif call('HLEN', key('alert_notices')) >= MOST_NOTICES then   -- told when there is room again
    return
  end
  local kind, severity = kind_of(alert.l, alert.t), SEVERITIES[math.max(alert.l, alert.t)]
  local channels = alert.tc
  if alert.l >= alert.t then
    channels = alert.l == 2 and reading.critical_channels or reading.channels
    add_channels(alert.tc, channels)
  end
  for _, channel in ipairs(channels) do
    local name = tostring(channel) .. ' ' .. severity
    local changes = context.alert_notices[name] or {}
    changes[#changes + 1] = { kind, reading.rule, reading.subject, SEVERITIES[alert.l] or severity, alert.s, alert.x }
    context.alert_notices[name] = changes
  end
  alert.t, alert.ta = alert.l, now
  alert.tc = alert.l > 0 and alert.tc or {}
end

--- Store the notices under ids that follow from the turn.
local function write_notices(token)
  local names = {}
  for name in pairs(context.alert_notices) do
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local channel, severity = string.match(name, '^(.*) (%S+)$')
    call('HSET', key('alert_notices'), token .. '-' .. i,
      cmsgpack.pack({ channel, severity, now_us(), context.alert_notices[name] }))
  end
end

local function tell_silence(name, one, by)
  local what = (one.r ~= '' and one.r or '*') .. ' ' .. (one.s ~= '' and one.s or '*')
  tell_alert_event(name, what, one.y, by)
end
