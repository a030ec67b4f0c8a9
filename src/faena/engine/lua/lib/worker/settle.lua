--- End leases. An item whose lease no longer matches changes nothing and is reported as lost.
--@include keys, listpack, event_and_stats, job_metadata, lease_record, end_lease, finish, bury, hooks
--@include settle_other_outcomes, settle_lanes
--@exports new_batch, apply, settle
local function new_batch()
  return { completed = {}, dead = {}, cancelled = {}, retried = {}, snoozed = {}, parked = {}, released = {},
           limited = {}, delayed = {}, ready = {}, back = {}, results = {},
           lost = {}, left = {}, notes = {}, errors = {}, failed = {}, lanes = {}, chains = {}, held = {}, ended = {}, chained = {} }
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
  if batch.is_laned then
    settle_lanes(batch, conf, now)
  end
  if #batch.results > 0 and keeps('completed', conf) then
    leave_listpack(key('results'), call('HSET', key('results'), unpack(batch.results)))
  end
  if conf.hook_failed and #batch.failed > 0 then
    add_hooks('failed', conf.hook_failed, batch.failed, marks, batch.errors, conf, now)
  end
  if conf.hook_dead and #batch.dead > 0 then   -- while specs of those that are not kept are there
    add_hooks('dead', conf.hook_dead, batch.dead, marks, batch.errors, conf, now)
  end
  finish('completed', batch.completed, marks, conf, now, batch.results, batch.kept, batch.leases)
  finish('dead', batch.dead, marks, conf, now, nil, nil, batch.leases)
  batch.records = bury(batch.dead, batch.notes, batch.errors, marks, conf, now)
  finish('cancelled', batch.cancelled, marks, conf, now, nil, nil, batch.leases)
  record_event('retried', batch.retried)
  record_event('snoozed', batch.snoozed)
  record_event('parked', batch.parked)
  record_event('released', batch.released)
  record_event('limited', batch.limited)
end

--- Where the queue has a history, it tells who ran a job and since when.
local function keep_leases(batch, ids, records)
  for i = 1, batch.leases and #ids or 0 do
    batch.leases[ids[i]] = records[i]
  end
end

--- The ordinary ending, in columns: completed, with or without a result.
local function complete_all(batch, ids, leases, results)
  local records, done, number = call('HMGET', key('leases'), unpack(ids)), batch.completed, 0
  local results_of, size, bytes = batch.results, 0, 0
  for i = 1, #ids do
    if holds_lease(records[i], leases[i]) then
      number = number + 1
      done[number], records[number] = ids[i], records[i]
      if results[i] then
        results_of[size + 1], results_of[size + 2] = ids[i], results[i]
        size, bytes = size + 2, bytes + #results[i]
      end
    else
      table.insert(batch.lost, ids[i])
    end
  end
  note_completed(batch, done, records)
  keep_leases(batch, done, records)
  batch.kept = bytes
  batch.left = { unpack(done) }
  return marks_of(done)
end

--- `ids` with `leases` are completed, those that have one with a result; `items` are other endings,
-- {id, lease, kind, number, said, note}. No id stands twice. Returns the ids whose leases were lost.
local function settle(ids, leases, results, items, conf, now)
  if #ids + #items == 0 then
    return {}   -- an idle worker's claim: a batch would cost it more than its commands
  end
  local batch = new_batch()
  batch.now, batch.spent, batch.leases = now, conf.fair_time and {} or nil, conf['history:room'] and {} or nil
  local marks = #ids > 0 and complete_all(batch, ids, leases, results) or {}
  if #items > 0 then
    settle_other_outcomes(batch, items, marks, conf, now)
  end
  apply(batch, marks, conf, now)
  return batch.lost
end
