--- A call that is sent again gets the answer it got before. One that a later call of its caller has
-- overtaken is refused: no caller waits for its answer, and what it claimed would be stranded.
-- A caller has one call in flight, so its last call is enough; the ids of its calls grow, by length
-- and then by bytes. The record outlives any lease.
--@include keys
--@exports is_after, last_call, turn_of, replayed_in, replayed, remember, exchange_record, restore_record
local REPLAY_TTL_S = 3600

local STEM = 12   -- what the ids of one caller begin with

--- Bytes, not letters: `<` on strings would obey the server's locale.
local function is_before(a, b)
  if #a ~= #b then
    return #a < #b
  end
  for i = string.sub(a, 1, STEM) == string.sub(b, 1, STEM) and STEM + 1 or 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return false
end

--- Whether a call is later than the one that a record tells of.
local function is_after(record, id)
  return is_before(string.match(record, '^[^\n]*'), id)
end

--- The id of a caller's last call, or an empty one.
local function last_call(caller)
  return string.match(call('GET', key('call:' .. (caller or ''))) or '', '^[^\n]*')
end

--- Which of its caller's calls one is: what follows the stem that they share, a number; or nil.
local function turn_of(id)
  return tonumber(string.sub(id or '', STEM + 1), 16)
end

--- What a caller's record says of a call: the answer given before, or nil and whether it was overtaken.
local function replayed_in(last, id)
  if not last then
    return nil, false
  end
  local known = string.match(last, '^[^\n]*')
  if known == id then
    return string.sub(last, #id + 2), false
  end
  return nil, is_before(id, known)
end

--- The same by the caller.
local function replayed(caller, id)
  return replayed_in(call('GET', key('call:' .. caller)), id)
end

--- Keep an answer; `write` runs the command, if not `call`.
local function remember(caller, id, answer, ttl_s, write)
  write = write or call
  write('SET', key('call:' .. caller), id .. '\n' .. answer, 'EX', ttl_s or REPLAY_TTL_S)
end

--- The same where the answer is known before anything is done: with the record that was there, so that
-- one command does what `replayed` and `remember` need two for.
local function exchange_record(caller, id, answer)
  return call('SET', key('call:' .. caller), id .. '\n' .. answer, 'EX', REPLAY_TTL_S, 'GET')
end

local function restore_record(caller, record)
  if record then
    call('SET', key('call:' .. caller), record, 'EX', REPLAY_TTL_S)
  else
    call('DEL', key('call:' .. caller))
  end
end
