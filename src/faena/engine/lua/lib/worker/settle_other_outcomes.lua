--- Every ending but the ordinary one: its kind, a number, what is said of it, and of a death a note for the desk.
--   retry            delay      error, as JSON
--   snooze           delay      '+' and why, or '?' and why it was parked
--   bury             attempts   error · note, see bury.lua, or ''
--   cancel, expire              error; to expire is to have been claimed too late to be started
--   release          priority   that it has from now on; 0 keeps its priority and its position
--   limited          delay      the reason of a hold: a provider said "not before", or takes no calls. The whole queue is
--                               held and the job put back
--   tenant_limited   delay      the same for the job's tenant; without lanes the job alone is put off
--@include keys, job_metadata, lease_record, end_lease, errors_and_logs, queue_holds, adaptive_limits, enqueued_at
--@include safe_read, score
--@exports is_outcome, settle_other_outcomes
local function fail(batch, id, mark, error, attempts)
  if attempts > 0 then
    mark.a = (mark.a or 0) + attempts
  end
  if error ~= '' then
    append_line(id, 'error', error)
    mark.i = 1
    batch.errors[id] = error
  end
  batch.marked[#batch.marked + 1] = id
end

local function put_off(batch, id, due)
  batch.delayed[#batch.delayed + 1] = due
  batch.delayed[#batch.delayed + 1] = id
end

--- A job that would be tried again when it has expired ends now; the words are the worker's.
local function expire(batch, id, now)
  append_line(id, 'error', string.format(
    '{"name":"Expired","message":"it expired before it could be tried again","code":"EXPIRED","at":%.0f}', now))
  table.insert(batch.cancelled, id)
end

local settle_as = {
  retry = function(batch, id, mark, now, delay, error)
    fail(batch, id, mark, error, 1)
    mark.y, mark.r = nil, nil   -- it does not wait for that any more
    table.insert(batch.failed, id)
    if mark.e and now + delay >= mark.e then
      return expire(batch, id, now)
    end
    put_off(batch, id, now + delay)
    table.insert(batch.retried, id)
  end,
  snooze = function(batch, id, mark, now, delay, said)
    put_off(batch, id, now + delay)
    local why = string.sub(said, 2)
    local is_parked = string.sub(said, 1, 1) == '?'
    if is_parked then
      mark.y = { (mark.y and count_in(mark.y[1]) or 0) + 1, why }
    elseif said ~= '' then
      mark.k, mark.r, mark.y = (mark.k or 0) + 1, why, nil
    end
    batch.marked[#batch.marked + 1] = id
    table.insert(is_parked and batch.parked or batch.snoozed, id)
  end,
  bury = function(batch, id, mark, _, attempts, error, note)
    fail(batch, id, mark, error, attempts)
    batch.failed[#batch.failed + 1] = attempts > 0 and id or nil
    batch.notes[id] = note
    table.insert(batch.dead, id)
  end,
  expire = function(batch, id, mark, _, _, error)
    fail(batch, id, mark, error, 0)
    table.insert(batch.cancelled, id)
  end,
  cancel = function(batch, id, mark, _, _, error)
    fail(batch, id, mark, error, 1)
    table.insert(batch.cancelled, id)
  end,
}

--- Whether jobs can end so.
local function is_outcome(kind)
  return settle_as[kind] ~= nil or kind == 'release' or kind == 'limited' or kind == 'tenant_limited'
end

local RATE_LIMITED = 'rate_limited'
local SAYS_ERROR = { retry = true, bury = true, cancel = true, expire = true }
local LEAVE = { retry = true, snooze = true, tenant_limited = true }

--- Jobs that leave their places for others remember when they came; `leases` are records by id.
local function keep_enqueued(items, leases, marks, conf)
  local leaving = {}
  for _, item in ipairs(items) do
    leaving[#leaving + 1] = LEAVE[item.kind] and not marks[item.id].q and item.id or nil
  end
  local specs = #leaving > 0 and call('HMGET', key('specs'), unpack(leaving)) or {}
  for i, id in ipairs(leaving) do
    marks[id].q = specs[i] and enqueued_at(specs[i], marks[id], score_in(leases[id]), conf) or nil
  end
end

--- Give a job another priority; returns how far that moves it. Jobs of a chain keep their order.
local function change_priority(batch, id, mark, priority, conf)
  local before = priority_of(call('HGET', key('specs'), id), mark)
  mark.p = priority
  batch.marked[#batch.marked + 1] = id
  return batch.chains[id] and 0 or (priority - before) * conf.age_step_us
end

local function settle_one(batch, item, record, mark, conf, now)
  local kind = item.kind
  note_place(batch, item.id, record)
  if batch.chains[item.id] then
    mark.s = score_in(record)   -- it comes back to its place
  end
  local reason = item.said ~= '' and item.said or RATE_LIMITED
  if kind == 'limited' then
    extend_hold(reason, now + tonumber(item.number), now)
    if conf.learn and reason == RATE_LIMITED then
      lower_limits(conf.limits, nil, now)
    end
  end
  if mark.c then
    item.said = SAYS_ERROR[kind] and item.said or ''   -- what else is said is no error
    kind = 'cancel'
  end
  table.insert(batch.left, item.id)
  if kind == 'tenant_limited' then
    local until_at = now + tonumber(item.number)
    batch.held[#batch.held + 1] = { lane = batch.lanes[item.id], until_at = until_at, reason = reason }
    kind = batch.lanes[item.id] and 'limited' or 'snooze'
    item.said = reason ~= RATE_LIMITED and '?' .. reason or ''
  end
  if kind == 'release' or kind == 'limited' then
    local priority = kind == 'release' and tonumber(item.number) or 0
    put_back(batch, item.id, record, priority > 0 and change_priority(batch, item.id, mark, priority, conf) or 0)
    table.insert(batch[kind == 'release' and 'released' or 'limited'], item.id)
  else
    settle_as[kind](batch, item.id, mark, now, tonumber(item.number), item.said, item.note)
  end
end

local function settle_other_outcomes(batch, items, marks, conf, now)
  local ids = {}
  batch.marked = {}
  for i, item in ipairs(items) do
    ids[i] = item.id
  end
  local records = call('HMGET', key('leases'), unpack(ids))
  for id, mark in pairs(marks_of(ids)) do
    marks[id] = mark
  end
  local held, leases = {}, {}
  for i, item in ipairs(items) do
    if holds_lease(records[i], item.lease) then
      marks[item.id], leases[item.id] = marks[item.id] or {}, records[i]
      held[#held + 1] = item
    else
      table.insert(batch.lost, item.id)
    end
  end
  keep_enqueued(held, leases, marks, conf)
  for _, item in ipairs(held) do
    if batch.leases then
      batch.leases[item.id] = leases[item.id]
    end
    settle_one(batch, item, leases[item.id], marks[item.id], conf, now)
  end
  save_marks(batch.marked, marks)
end
