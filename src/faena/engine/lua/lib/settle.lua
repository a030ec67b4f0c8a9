--- End leases. An item whose lease no longer matches changes nothing and is reported as lost.
--   complete [result]   retry delay error   snooze delay   bury error   cancel error   release
--   limited delay: a provider's "not before", so the whole queue is held and the job put back
--@include key, mark, finish, info, score, tally, hold
-- A record begins with its lease and a space; one lease may be the beginning of another.
local function holds_lease(record, lease)
  return record and string.find(record, lease, 1, true) == 1 and string.byte(record, #lease + 1) == 32
end

--- The ready score a lease was claimed at, which is its last word.
local function score_in(record)
  return string.match(record, '(%S+)$')
end

local function new_batch()
  return { completed = {}, dead = {}, cancelled = {}, retried = {}, snoozed = {}, released = {},
           limited = {}, delayed = {}, ready = {}, results = {},
           lost = {}, left = {} }
end

local function fail(id, mark, error)
  mark.a = (mark.a or 0) + 1
  if error ~= '' then
    append_info(id, 'error', error)
    mark.i = 1
  end
  save_mark(id, mark)
end

local function put_off(batch, id, due)
  batch.delayed[#batch.delayed + 1] = due
  batch.delayed[#batch.delayed + 1] = id
end

local settle_as = {
  complete = function(batch, id, _, _, _, result)
    table.insert(batch.completed, id)
    if result ~= '' then
      table.insert(batch.results, id)
      table.insert(batch.results, result)
    end
  end,
  retry = function(batch, id, mark, now, delay, error)
    fail(id, mark, error)
    put_off(batch, id, now + delay)
    table.insert(batch.retried, id)
  end,
  snooze = function(batch, id, _, now, delay)
    put_off(batch, id, now + delay)
    table.insert(batch.snoozed, id)
  end,
  bury = function(batch, id, mark, _, _, error)
    fail(id, mark, error)
    table.insert(batch.dead, id)
  end,
  cancel = function(batch, id, mark, _, _, error)
    fail(id, mark, error)
    table.insert(batch.cancelled, id)
  end,
}

--- Give a job back to the place it was claimed from, without using an attempt.
local function put_back(batch, id, record)
  batch.ready[#batch.ready + 1] = score_in(record)
  batch.ready[#batch.ready + 1] = id
end

local function settle_one(batch, item, record, mark, now)
  local kind = item.kind
  if kind == 'limited' then
    extend_hold('rate_limited', now + tonumber(item.number), now)
  end
  if mark.c and kind ~= 'complete' then
    kind = 'cancel'
  end
  table.insert(batch.left, item.id)
  if kind == 'release' or kind == 'limited' then
    put_back(batch, item.id, record)
    table.insert(batch[kind == 'release' and 'released' or 'limited'], item.id)
  else
    settle_as[kind](batch, item.id, mark, now, tonumber(item.number), item.blob)
  end
end

--- Write what a batch of endings came to.
local function apply(batch, marks, conf, now)
  if #batch.left > 0 then
    call('HDEL', key('leases'), unpack(batch.left))
    call('ZREM', key('running'), unpack(batch.left))
  end
  if #batch.delayed > 0 then
    call('ZADD', key('delayed'), unpack(batch.delayed))
  end
  if #batch.ready > 0 then
    call('ZADD', key('ready'), unpack(batch.ready))
  end
  if #batch.results > 0 and keeps('completed', conf) then
    call('HSET', key('results'), unpack(batch.results))
  end
  finish('completed', batch.completed, marks, conf, now)
  finish('dead', batch.dead, marks, conf, now)
  finish('cancelled', batch.cancelled, marks, conf, now)
  tell('retried', batch.retried)
  tell('snoozed', batch.snoozed)
  tell('released', batch.released)
  tell('limited', batch.limited)
end

--- The ordinary ending, in columns: completed without a result, no fact of the job's own.
local function complete_plain(batch, ids, leases)
  local records, done, number = call('HMGET', key('leases'), unpack(ids)), batch.completed, 0
  for i = 1, #ids do
    if holds_lease(records[i], leases[i]) then
      number = number + 1
      done[number] = ids[i]
    else
      table.insert(batch.lost, ids[i])
    end
  end
  batch.left = { unpack(done) }
  return marks_of(done)
end

local function settle_items(batch, items, marks, now)
  local ids = {}
  for i, item in ipairs(items) do
    ids[i] = item.id
  end
  local records = call('HMGET', key('leases'), unpack(ids))
  for id, mark in pairs(marks_of(ids)) do
    marks[id] = mark
  end
  for i, item in ipairs(items) do
    if holds_lease(records[i], item.lease) then
      marks[item.id] = marks[item.id] or {}
      settle_one(batch, item, records[i], marks[item.id], now)
    else
      table.insert(batch.lost, item.id)
    end
  end
end

--- `ids` with `leases` are completed without a result; `items` are {id, lease, kind, number, blob}.
-- No id stands twice.
local function settle(ids, leases, items, conf, now)
  local batch = new_batch()
  local marks = #ids > 0 and complete_plain(batch, ids, leases) or {}
  if #items > 0 then
    settle_items(batch, items, marks, now)
  end
  apply(batch, marks, conf, now)
  return batch
end
