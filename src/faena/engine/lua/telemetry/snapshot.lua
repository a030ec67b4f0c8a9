--- How a shard is at one instant, for metrics, alerts and screens: without settings, and as short as it can be.
-- states   none
-- keys     all zsets · desk: zsets · specs, marks, holds, about, totals, stats hashes · workers zset
--@args     none
-- returns  now · (state · number) …; of `dead`, those that nobody has dealt with · holds ·
--          (worker · until it is taken for gone) … · (worker · what it says of itself) … · (counter · number) … ever ·
--          when the job that comes first became ready, '' if none is ready · when the first pending dead job died, '' without
--          any · 0 if a claim would be given no ready job: the queue, or each of their tenants, is at a bound or held
--@flags no-writes
--@include now, job_state, dead_index, queue_settings, job_metadata, spec_line, score, minutes, keys
--@include clock_fields
local DEALT_WITH = { 'retried', 'discarded', 'resolved' }

local function numbers_by_state()
  local numbers = {}
  for _, state in ipairs(STATES) do
    numbers[#numbers + 1], numbers[#numbers + 2] = state, call('ZCARD', key(state))
    for _, status in ipairs(state == 'dead' and DEALT_WITH or {}) do
      numbers[#numbers] = numbers[#numbers] - call('ZCARD', index_key('status:' .. status))
    end
  end
  return numbers
end

--- The score of a ready job is when it became ready, and what its priority and its attempts are worth; of one in a
-- chain the instant alone.
local function ready_since()
  local first, conf = call('ZRANGE', key('ready'), 0, 0, 'WITHSCORES'), conf_now()
  local id, score = first[1], tonumber(first[2])
  if not id or not conf.version then
    return ''
  end
  local spec, mark = call('HGET', key('specs'), id), marks_of({ id })[id] or {}
  local _, chain = lane_in(spec)
  return whole(score - (chain and 0 or score_of(conf, 0, priority_of(spec, mark), mark.a or 0)))
end

--- The ring has the lanes that may be served; the others wait until an instant, or until one of their jobs ends.
local function is_open()
  local most = conf_now().max_running
  if most and call('ZCARD', key('running')) >= most then
    return 0
  end
  local is_laned = clock_of('laned') > 0 and clock_of('laned') >= call('ZCARD', key('ready'))
  local may_serve = call('EXISTS', key('ring')) == 1 or call('ZCOUNT', key('parked'), '-inf', now) > 0
  return is_laned and not may_serve and 0 or 1
end

local oldest_dead = call('ZRANGE', index_key('status:pending'), 0, 0, 'WITHSCORES')[2] or ''
local totals = {}
for name, number in pairs(totals_now()) do
  totals[#totals + 1], totals[#totals + 2] = name, whole(number)
end
return { now, numbers_by_state(), call('HGETALL', key('holds')),
  call('ZRANGE', key('workers'), now, '+inf', 'BYSCORE', 'WITHSCORES'), call('HGETALL', key('about')), totals,
  ready_since(), oldest_dead, is_open() }
