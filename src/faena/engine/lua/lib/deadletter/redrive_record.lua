--- Redrives: dead jobs that are retried by and by.
--   redrives   id -> packed record: state running|canary|stopped|failed|done · filter {task, tenant, error,
--              print} · from_at, until_at (of the deaths that count) · score, last (where it has come to) · max, per_us
--              (its rate; none without) · due_at (when the rate allows the next) · canary (how many first)
--              · first (the jobs made of those) · well (all have completed, or none were asked for) · failures (that are borne; any without) · moved · died · by ·
--              reason · at (begun) · ended_at
--@include safe_read, keys, listpack
--@exports redrive_of, is_under_way, save_redrive, end_redrive, note_death, forget_redrives
local KEPT = 100   -- redrives that are remembered

local KINDS = { state = 'string', filter = 'table', from_at = 'number', until_at = 'number', score = 'string',
                last = 'string', max = 'number', per_us = 'number', due_at = 'number', canary = 'number',
                first = 'table', failures = 'number', moved = 'number', died = 'number', ended_at = 'number' }

local function read_redrive(packed)
  return keep_kinds(unpacked(packed) or {}, KINDS)
end

local function redrive_of(id)
  local packed = call('HGET', key('redrives'), id)
  return packed and read_redrive(packed) or nil
end

local function is_under_way(redrive)
  return redrive.state == 'running' or redrive.state == 'canary'
end

local function save_redrive(id, redrive)
  redrive.z = PADDING
  call('HSET', key('redrives'), id, cmsgpack.pack(redrive))
end

local function end_redrive(redrive, state, now)
  redrive.state, redrive.ended_at = state, now
end

--- A job that a redrive has made is dead again.
local function note_death(id, now)
  local redrive = redrive_of(id)
  if not redrive then
    return
  end
  redrive.died = (redrive.died or 0) + 1
  local most = redrive.state == 'canary' and 0 or redrive.failures
  if is_under_way(redrive) and most and redrive.died > most then
    end_redrive(redrive, 'failed', now)
  end
  save_redrive(id, redrive)
end

--- Make room for one more: those that ended first are forgotten.
local function forget_redrives()
  local all, ended = call('HGETALL', key('redrives')), {}
  if #all < 2 * KEPT then
    return
  end
  for i = 1, #all, 2 do
    local redrive = read_redrive(all[i + 1])
    if not is_under_way(redrive) then
      ended[#ended + 1] = { all[i], redrive.ended_at or 0 }
    end
  end
  table.sort(ended, function(a, b) return a[2] < b[2] end)
  for i = 1, math.min(#ended, #all / 2 - KEPT + 1) do
    call('HDEL', key('redrives'), ended[i][1])
  end
end
