--- A call that fails leaves nothing behind. The server runs a script without interruption, but takes nothing
-- back when it fails: so `noted`, which stands for redis.call, notes what was there before each command that
-- writes, and `guarded` puts it back. What a key held is noted once a call, by fields and members; a key that
-- is removed is only renamed until the call is over, however large it is.
-- The two calls that every job needs do without: they judge everything before their first write. What
-- cannot fail needs no note if it is written after all that may: `write_last`.
--@exports noted, guarded, write_last
local NONE = -2   -- as PEXPIRETIME says of a key that is not there

local raw         -- redis.call, which is there only while a function runs
local notes       -- key -> expires (at), hash, zset, set: name -> what was there, or false; text, kept, added
local kept        -- names of keys under which removed ones are kept
local last        -- commands that `write_last` is to run

local function note_of(name)
  local note = notes[name]
  if not note then
    note = { expires = raw('PEXPIRETIME', name), hash = {}, zset = {}, set = {}, added = {} }
    notes[name] = note
  end
  return note
end

--- As the server reads a number.
local function as_text(value)
  return type(value) == 'number' and string.format('%.17g', value) or value
end

--- Note what `ask` says of those of `names` that are not noted yet.
local function note_names(name, kind, ask, names)
  local note, fresh = note_of(name), {}
  if note.expires == NONE or note.kept then
    return
  end
  for _, one in ipairs(names) do
    one = as_text(one)
    fresh[#fresh + 1] = note[kind][one] == nil and one or nil
  end
  -- noted once it is read: of a key of another type there is nothing to put back
  for i, value in ipairs(#fresh > 0 and raw(ask, name, unpack(fresh)) or {}) do
    note[kind][fresh[i]] = value
  end
end

--- Each `step`-th of a list, from one on.
local function picked(list, from, step)
  local some = {}
  for i = from, #list, step do
    some[#some + 1] = list[i]
  end
  return some
end

local function fields(from, step)
  return function(name, args)
    note_names(name, 'hash', 'HMGET', picked(args, from, step))
  end
end

local function members(ask)
  return function(name, args)
    note_names(name, 'zset', 'ZMSCORE', ask(name, args))
  end
end

local function in_set(name, args)
  note_names(name, 'set', 'SMISMEMBER', args)
end

--- Members in the arguments of ZADD, behind its flags.
local function scored(_, args)
  local from = 1
  while from < #args and not tonumber(args[from]) do
    from = from + 1
  end
  return picked(args, from + 1, 2)
end

--- Keep a key under another name, as it is or (`verb` COPY) a copy of it.
local function keep(name, verb)
  local note = note_of(name)
  if note.expires ~= NONE and not note.kept and raw('EXISTS', name) == 1 then
    note.kept = name .. ':kept'
    kept[#kept + 1] = note.kept
    raw(verb, name, note.kept)
    return 1
  end
  return note.kept and verb == 'COPY' and 0 or raw('UNLINK', name)
end

local function copy(name)
  if note_of(name).expires ~= NONE and not note_of(name).kept then
    keep(name, 'COPY')
  end
end

local function text(name)
  local note = note_of(name)
  if note.expires ~= NONE and not note.kept and note.text == nil then
    note.text = raw('GET', name)
  end
end

local NOTERS = {
  HSET = fields(1, 2), HSETNX = fields(1, 2), HINCRBY = fields(1, 2), HINCRBYFLOAT = fields(1, 2),
  HDEL = fields(1, 1),
  ZADD = members(scored),
  ZREM = members(function(_, args) return args end),
  ZINCRBY = members(function(_, args) return { args[2] } end),
  ZPOPMIN = members(function(name, args) return raw('ZRANGE', name, 0, (args[1] or 1) - 1) end),
  ZREMRANGEBYSCORE = members(function(name, args) return raw('ZRANGE', name, args[1], args[2], 'BYSCORE') end),
  SADD = in_set, SREM = in_set,
  SET = text,
  RPUSH = copy, ZUNIONSTORE = copy, XTRIM = copy,
  EXPIRE = note_of, PEXPIRE = note_of, PERSIST = note_of,
}

local READERS = {
  EXISTS = true, GET = true, HEXISTS = true, HGET = true, HGETALL = true, HKEYS = true, HLEN = true, HMGET = true,
  HSCAN = true, HSTRLEN = true, LINDEX = true, LRANGE = true, MGET = true, PTTL = true, PUBLISH = true, SCARD = true,
  TIME = true, TYPE = true, XINFO = true, XLEN = true, XRANGE = true, XREVRANGE = true, ZCARD = true, ZCOUNT = true, ZMSCORE = true, ZRANDMEMBER = true,
  ZRANGE = true, ZRANK = true, ZSCORE = true,
}

local function remove(names)
  local number = 0
  for _, name in ipairs(names) do
    number = number + keep(name, 'RENAME')
  end
  return number
end

local function append(name, ...)
  local added, id = note_of(name).added, raw('XADD', name, ...)
  added[#added + 1] = id
  return id
end

local function noted(verb, ...)
  if READERS[verb] then
    return raw(verb, ...)
  elseif verb == 'DEL' or verb == 'UNLINK' then
    return remove({ ... })
  elseif verb == 'XADD' then
    return append(...)
  end
  local name, args = ..., { select(2, ...) }
  NOTERS[verb](name, args)
  return raw(verb, ...)
end

local function put_back_names(name, known, add, remove, is_scored)
  for one, value in pairs(known) do
    if not value or value == 0 then
      raw(remove, name, one)
    elseif add == 'SADD' then
      raw(add, name, one)
    else
      raw(add, name, is_scored and value or one, is_scored and one or value)
    end
  end
end

local function put_back(name, note)
  if note.kept then
    raw('UNLINK', name)
    raw('RENAME', note.kept, name)
  end
  if note.expires == NONE then
    return raw('UNLINK', name)
  elseif note.text then
    raw('SET', name, note.text)
  end
  put_back_names(name, note.hash, 'HSET', 'HDEL')
  put_back_names(name, note.zset, 'ZADD', 'ZREM', true)
  put_back_names(name, note.set, 'SADD', 'SREM')
  if #note.added > 0 then
    raw('XDEL', name, unpack(note.added))
  end
  if note.expires >= 0 then
    raw('PEXPIREAT', name, note.expires)
  else
    raw('PERSIST', name)
  end
end

--- Run a command when all else of the call is done, without a note: one that cannot fail. That is a SET, or one whose key
-- this call has read with a command for the same type; and the script may write to a full server. Until then others
-- read what was there before.
local function write_last(...)
  last[#last + 1] = { ... }
end

local function run_and_write(run)
  local answer = run()
  for i = 1, #last do
    raw(unpack(last[i]))
  end
  return answer
end

--- Run a script's body: all of it, or none.
local function guarded(run)
  raw, notes, kept, last = redis.call, {}, {}, {}
  local is_done, answer = pcall(run_and_write, run)
  if not is_done then
    for name, note in pairs(notes) do
      put_back(name, note)
    end
    return redis.error_reply(type(answer) == 'table' and answer.err or 'ERR ' .. tostring(answer))
  elseif #kept > 0 then
    raw('UNLINK', unpack(kept))
  end
  return answer
end
