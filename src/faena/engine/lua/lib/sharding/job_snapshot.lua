--- A job as it travels from one shard to another: everything that is known of it.
--   1 id · 2 spec · 3 state · 4 score · 5 mark, packed · 6 info as name, value … · 7 result · 8 `head` or
--   `tail` of its chain, or '' · 9 its unique claim: key, value, ttl_ms (0: with the job) · 10 until when a
--   provider has its lane held, if it has, or false · 11 its record at the dead-letter desk, if it has one: packed
--   record, packed sample of its group, when it is due or ''
--@include keys, spec_line
--@exports EPOCH, ID, SPEC, STATE, SCORE, MARK, INFO, RESULT, TURN, CLAIM, HELD, DESK, pack_job
local EPOCH = 1e8   -- numbers of batches begin with the epoch they were sent under
local ID, SPEC, STATE, SCORE, MARK, INFO, RESULT, TURN, CLAIM, HELD, DESK = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  11

--- The name, value and time left of the claim that a job holds, or nothing.
local function claim_of(id, spec, mark)
  local facts = facts_in(spec)
  local mode, hash = mark.m or facts.mode, mark.u or facts.unique
  if not hash then
    return {}
  end
  local name = 'unique:' .. mode .. ':' .. hash
  local value = call('GET', key(name))
  if not value or string.match(value, '^%S+') ~= id then
    return {}
  end
  local ttl = call('PTTL', key(name))
  return { name, value, ttl < 0 and 0 or math.max(ttl, 1) }   -- its last moment must not last for ever
end

local function place_in(chain, id)
  if chain and call('HGET', key('heads'), chain) == id then
    return 'head'
  end
  return chain and call('ZSCORE', key('tail:' .. chain), id) and 'tail' or ''
end

local function pack_job(id, spec, state, score)
  local packed = call('HGET', key('marks'), id)
  local mark = packed and cmsgpack.unpack(packed) or {}
  local _, chain = lane_in(spec)
  return { id, spec, state, score, packed or '', mark.i and call('HGETALL', key('info:' .. id)) or {},
           call('HGET', key('results'), id) or '', place_in(chain, id), claim_of(id, spec, mark) }
end
