--- History: what is known of jobs when they end, kept until a reader outside of the broker has stored it.
--   history         a stream; of an entry, `n` is the number of its jobs and `is` what is packed:
--                   {1, when, how they ended, age step, {id, spec, lease, mark, error, result} …}, or for jobs that found
--                   no room {1, when, 'gap', since when, how many}
--   history_stats   bytes in the stream; lost, jobs that found no room, and since when
-- Specs come without their payloads, unless these are kept as well. Of a job that was not running, `lease` says only
-- the score it had. Nothing here may fail: jobs have been written when it is called.
--@include keys, safe_read
--@exports record_history, score_as_lease, write_gap
local ENTRY_BYTES = 262144   -- so that a reader can take many entries at a time
local FRONT_BYTES, TEXT_BYTES = 4096, 65536
local TOLD = { 'a', 'l', 'p', 'q', 'o', 'b', 'w' }   -- see job_metadata.lua

--- What stands before the payload.
local function front_of(spec)
  local at = string.find(spec, '"payload":', 1, true) or FRONT_BYTES
  return string.sub(spec, 1, math.min(at - 1, FRONT_BYTES))
end

local function told_of(mark)
  local told = nil
  for _, name in ipairs(mark and TOLD or {}) do
    if mark[name] then
      told = told or {}
      told[name] = mark[name]
    end
  end
  return told or false
end

--- What it failed with last, as its worker wrote it.
local function error_of(id)
  local info = key('info:' .. id)
  local number = call('HGET', info, 'errors')
  local error = number and call('HGET', info, 'error:' .. number)
  return error and string.sub(error, 1, TEXT_BYTES) or false
end

local function results_by_id(results)
  local found = {}
  for i = 1, #(results or {}), 2 do
    found[results[i]] = #results[i + 1] <= TEXT_BYTES and results[i + 1] or nil
  end
  return found
end

--- Jobs that found no room are counted; what else has the name of the counter is not ours.
local function lose(number, now)
  local count = key('history_stats')
  if call('TYPE', count).ok ~= 'hash' then
    call('UNLINK', count)
  end
  bump(count, 'lost', number)
  call('HSETNX', count, 'since', whole(now))
end

--- A reader learns from the stream how many were lost before what follows.
local function write_gap(now)
  local count = key('history_stats')
  local lost, since = unpack(call('HMGET', count, 'lost', 'since'))
  if count_in(lost, 0) > 0 then
    local packed = cmsgpack.pack({ 1, now, 'gap', number_in(since, now), count_in(lost, 0) })
    call('XADD', key('history'), '*', 'n', 0, 'is', packed)
    bump(count, 'bytes', #packed)
    call('HDEL', count, 'lost', 'since')
  end
end

local function append(entry, number, room, now)
  local count, packed = key('history_stats'), cmsgpack.pack(entry)
  local bytes, lost = unpack(call('HMGET', count, 'bytes', 'lost'))
  if count_in(bytes, 0) + #packed > room then
    return lose(number, now)
  elseif lost then
    write_gap(now)
  end
  call('XADD', key('history'), '*', 'n', number, 'is', packed)
  bump(count, 'bytes', #packed)
end

local function append_or_lose(entry, number, room, now)
  if not pcall(append, entry, number, room, now) then
    lose(number, now)   -- a stream that another program has spoilt
  end
end

--- What stands for the lease of a job that was waiting.
local function score_as_lease(score)
  return '- - - ' .. score
end

--- `ids` have ended as `state`, and their specs are still there; `marks` are theirs, `leases` the records of those that
-- ran, by id, and `results` as id, result …
local function record_history(state, ids, marks, conf, now, leases, results)
  local room = conf['history:room']
  if not room or #ids == 0 then
    return
  end
  local with_payloads = conf['history:payloads']
  local specs, kept = call('HMGET', key('specs'), unpack(ids)), with_payloads and results_by_id(results) or {}
  local jobs, number, bytes = {}, 0, 0
  for i = 1, #ids do
    local id, spec = ids[i], specs[i] or ''
    local mark = marks[id]
    local is_whole = with_payloads and #spec <= TEXT_BYTES
    local job = { id, is_whole and spec or front_of(spec), leases and leases[id] or false, told_of(mark),
                  state ~= 'completed' and mark and mark.i and error_of(id) or false, kept[id] or false }
    number, bytes = number + 1, bytes + #job[2] + #(job[5] or '') + #(job[6] or '') + 100
    jobs[number] = job
    if bytes > ENTRY_BYTES or i == #ids then
      append_or_lose({ 1, now, state, conf.age_step_us, jobs }, number, room, now)
      jobs, number, bytes = {}, 0, 0
    end
  end
end
