--- Jobs whose lease ran out go back to where they were claimed, no attempt used. One that has cost
-- `max_deliveries` workers is dead, unparsed, with what is known of those deaths.
--@include safe_read, keys, event_and_stats, job_metadata, end_lease, settle, errors_and_logs
--@exports rescue
local function death_of(record, now)
  local _, started, worker = string.match(record, '^(%S+) (%S+) (%S+)')
  return { worker = worker or 'unknown', started_at = number_in(started, now), lost_at = now }
end

--- Errors are JSON; a worker's name is quoted as such, and numbers this large need their own format.
local function loss_json(death, losses)
  local message = 'worker ' .. death.worker .. ' died or froze with the job, delivery ' .. losses
  return string.format(
    '{"name":"WorkerLost","message":%s,"code":"WORKER_LOST","worker":%s,"started_at":%.0f,"at":%.0f}',
    cjson.encode(message), cjson.encode(death.worker), death.started_at, death.lost_at)
end

local function rescue_one(batch, id, record, mark, conf, now)
  table.insert(batch.left, id)
  note_place(batch, id, record)
  mark.l, mark.i, mark.f = (mark.l or 0) + 1, 1, nil
  local loss = loss_json(death_of(record, now), mark.l)
  append_line(id, 'error', loss)
  if mark.c then
    table.insert(batch.cancelled, id)
  elseif mark.l >= conf.max_deliveries then
    batch.errors[id] = loss
    table.insert(batch.dead, id)
  else
    put_back(batch, id, record)
    table.insert(batch.rescued, id)
  end
end

--- What is told of those that died here: id · task · tenant · losses; nil when none did.
local function losses_of(batch, marks)
  local losses = {}
  for i, id in ipairs(batch.dead) do
    local record = batch.records and batch.records[id] or { t = '', o = '' }
    losses[i] = { id, record.t, record.o, marks[id].l }
  end
  return losses[1] and losses
end

--- Returns how many leases had run out, and what is to be told of jobs that died of it.
local function rescue(conf, now, slice)
  local ids = call('ZRANGE', key('running'), '-inf', now, 'BYSCORE', 'LIMIT', 0, slice)
  if #ids == 0 then
    return 0
  end
  local batch, marks = new_batch(), marks_of(ids)
  batch.rescued, batch.leases = {}, conf['history:room'] and {} or nil
  local records = call('HMGET', key('leases'), unpack(ids))
  for i, id in ipairs(ids) do
    marks[id] = marks[id] or {}
    if batch.leases then
      batch.leases[id] = records[i] or nil
    end
    rescue_one(batch, id, records[i] or '', marks[id], conf, now)
  end
  save_marks(ids, marks)
  apply(batch, marks, conf, now)
  record_event('rescued', batch.rescued)
  return #ids, losses_of(batch, marks)
end
