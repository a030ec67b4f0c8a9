--- Jobs that have just died come to the dead-letter desk.
-- A worker sends a note with the job that it buries: 1 task · 2 tenant · 3 error's name · 4 code ·
-- 5 fingerprint · 6 message, as a sample of its kind · 7 after how long to retry by itself (0: never) ·
-- 8 how often at most. Of one that is buried here, or without a note, the spec and the error tell.
--@include safe_read, keys, spec_body, dead_index, finish, redrive_record
--@exports bury

--- A note that came with a job, if it is one.
local function read_note(packed)
  local note = unpacked(packed) or {}
  for i = 1, 6 do
    if type(note[i]) ~= 'string' then
      return nil
    end
  end
  note[7], note[8] = number_in(note[7], 0), number_in(note[8], 0)
  return note
end

--- A note made here, out of an error's JSON, whose quoted parts have no bare quotes.
local function own_note(error)
  local name = string.match(error, '^{"name":"([^"\\]+)"') or 'Unknown'
  local code = string.match(error, ',"code":"([^"\\]+)"') or ''
  local message = string.match(error, ',"message":"([^"\\]*)') or ''
  local print = string.sub(redis.sha1hex(name .. ' ' .. code), 1, 12)
  return { '', '', name, code, print, string.sub(message, 1, 200), 0, 0 }
end

local function record_of(id, note)
  local task, tenant = note[1], note[2]
  if task == '' then
    task, tenant = read_body(call('HGET', key('specs'), id) or '')
  end
  return { s = 'pending', t = task, o = tenant, e = note[3], c = note[4], f = note[5] }
end

--- `ids` have died at `now`; `notes` are theirs, packed, and `errors` as JSON, of those that have any. Returns
-- their records, or nil where dead jobs are not kept.
local function bury(ids, notes, errors, marks, conf, now)
  if #ids == 0 or not keeps('dead', conf) then
    return
  end
  local records, instants, samples = {}, {}, {}
  for _, id in ipairs(ids) do
    local mark, note = marks[id] or {}, read_note(notes[id]) or own_note(errors[id] or '')
    records[id], instants[id] = record_of(id, note), whole(now)
    samples[note[5]] = samples[note[5]] or note
    if note[7] > 0 and (mark.x or 0) < note[8] then
      call('ZADD', key('desk_due'), now + note[7], id)
    end
    if mark.d then
      note_death(mark.d, now)
    end
  end
  for print, note in pairs(samples) do
    call('HSETNX', key('desk_samples'), print, cmsgpack.pack({ note[3], note[4], note[6] }))
  end
  add_to_index(records, instants)
  return records
end
