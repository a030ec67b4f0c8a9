--- What this shard knows of jobs that are about to be enqueued at another: their lanes have moved there,
-- and what was here before counts.
-- states   none
-- keys     specs, transfer_out hashes · unique strings · all zsets
--@args     to, id mode hash...
--          to is the other shard; mode and hash of a unique claim, or ''
-- returns  for each: job · state · spec ('' for another job, which holds the claim), or '' · '' · ''
--@flags no-writes
--@include now, keys, job_state, job_snapshot
local travelling = {}
local batch = call('HGET', key('transfer_out'), to)
if batch then
  travelling = cmsgpack.unpack(string.match(batch, '^%d+ (.*)$'))
end

local function by_id(id)
  local spec = call('HGET', key('specs'), id)
  if spec then
    return { id, (state_of(id)) or 'removed', spec }
  end
  for _, job in ipairs(travelling) do
    if job[ID] == id then
      return { id, job[STATE], job[SPEC] }
    end
  end
end

local function by_claim(mode, hash)
  local name = 'unique:' .. mode .. ':' .. hash
  local value, state = call('GET', key(name)), nil
  for _, job in ipairs(travelling) do
    if job[CLAIM][1] == name then
      value, state = job[CLAIM][2], job[STATE]
    end
  end
  local holder, until_at = string.match(value or '', '^(%S+) ?(%d*)$')
  if holder and (until_at == '' or tonumber(until_at) > now) then
    return { holder, state or state_of(holder) or 'removed', '' }
  end
end

local answers = {}
for i = first_id, #ARGV, 3 do
  local found = by_id(ARGV[i]) or ARGV[i + 1] ~= '' and by_claim(ARGV[i + 1], ARGV[i + 2]) or { '', '', '' }
  for _, part in ipairs(found) do
    answers[#answers + 1] = part
  end
end
return answers
