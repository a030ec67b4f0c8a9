--- The dead-letter desk: a record of every dead job, and the indexes on which it is found.
--   desk          id -> packed record; of every job in `dead`, and of no other
--   desk:         status:<status> task:<task> tenant:<tenant> error:<name or code> print:<fingerprint>:
--                 ids by the instant of death
--   desk_groups   fingerprint -> how many of its jobs are pending
--   desk_samples  fingerprint -> packed name, code and message of its first error
--   desk_due      ids of pending jobs that are to be retried by themselves, by when
-- A record: s status · t task · o tenant · e error's name · c its code · f fingerprint · to the job that was
-- made of it · r resolution {action, reason, by, at}.
--@include safe_read, keys, listpack
--@exports index_key, records_of, indexes_of, add_to_index, remove_from_index, close_records
local TEXTS = { 's', 't', 'o', 'e', 'c', 'f' }

local function index_key(name)
  return key('desk:' .. name)
end

local function read_record(packed)
  local record = unpacked(packed) or {}
  for _, name in ipairs(TEXTS) do
    record[name] = type(record[name]) == 'string' and record[name] or ''
  end
  return record
end

--- The records of jobs, by id.
local function records_of(ids)
  local records = {}
  for i, packed in ipairs(#ids > 0 and call('HMGET', key('desk'), unpack(ids)) or {}) do
    records[ids[i]] = packed and read_record(packed) or nil
  end
  return records
end

local function indexes_of(record)
  local indexes = { 'status:' .. record.s, 'task:' .. record.t, 'print:' .. record.f, 'error:' .. record.e }
  if record.o ~= '' then
    indexes[#indexes + 1] = 'tenant:' .. record.o
  end
  if record.c ~= '' and record.c ~= record.e then
    indexes[#indexes + 1] = 'error:' .. record.c
  end
  return indexes
end

--- The words of all records by index: `words_of` gives what each has to say there.
local function sort_out(records, words_of)
  local indexes = {}
  for id, record in pairs(records) do
    for _, name in ipairs(indexes_of(record)) do
      local words = indexes[name] or {}
      indexes[name] = words
      words_of(words, id)
    end
  end
  return indexes
end

--- How many pending jobs each group of `records` has.
local function pending_in(records)
  local groups = {}
  for _, record in pairs(records) do
    groups[record.f] = (groups[record.f] or 0) + (record.s == 'pending' and 1 or 0)
  end
  return groups
end

--- Put records into their indexes; `instants` are those of the deaths.
local function add_to_index(records, instants)
  local packed = {}
  for id, record in pairs(records) do
    packed[#packed + 1], packed[#packed + 2] = id, cmsgpack.pack(record)
  end
  leave_listpack(key('desk'), call('HSET', key('desk'), unpack(packed)))
  local indexes = sort_out(records, function(words, id)
    words[#words + 1], words[#words + 2] = instants[id], id
  end)
  for name, words in pairs(indexes) do
    call('ZADD', index_key(name), unpack(words))
  end
  for print, number in pairs(pending_in(records)) do
    call('ZINCRBY', key('desk_groups'), number, print)
  end
end

--- Take the records of jobs away, with all that knows them.
local function remove_from_index(ids)
  local records = records_of(ids)
  if not next(records) then
    return
  end
  local indexes = sort_out(records, function(words, id)
    words[#words + 1] = id
  end)
  for name, words in pairs(indexes) do
    call('ZREM', index_key(name), unpack(words))
  end
  for print, number in pairs(pending_in(records)) do
    if call('EXISTS', index_key('print:' .. print)) == 1 then
      call('ZINCRBY', key('desk_groups'), -number, print)
    else
      call('ZREM', key('desk_groups'), print)
      call('HDEL', key('desk_samples'), print)
    end
  end
  call('HDEL', key('desk'), unpack(ids))
  call('ZREM', key('desk_due'), unpack(ids))
end

--- Pending jobs of the desk are dealt with; `r` and `to` of their records are the caller's to write.
local function close_records(ids, records, status)
  if #ids == 0 then
    return
  end
  local packed, scored, groups = {}, {}, {}
  for i, at in ipairs(call('ZMSCORE', index_key('status:pending'), unpack(ids))) do
    local id, record = ids[i], records[ids[i]]
    record.s = status
    packed[2 * i - 1], packed[2 * i] = id, cmsgpack.pack(record)
    scored[2 * i - 1], scored[2 * i] = at, id
    groups[record.f] = (groups[record.f] or 0) + 1
  end
  call('HSET', key('desk'), unpack(packed))
  call('ZREM', index_key('status:pending'), unpack(ids))
  call('ZADD', index_key('status:' .. status), unpack(scored))
  call('ZREM', key('desk_due'), unpack(ids))
  for print, number in pairs(groups) do
    call('ZINCRBY', key('desk_groups'), -number, print)
  end
end
