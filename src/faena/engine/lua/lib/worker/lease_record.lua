--- Lease records: `lease claimed_at worker score [lane=…] [chain=…]`, padded before the score; the score is the one
-- that the job goes back to.
--@include keys, safe_read
--@exports lease_stem, holds_lease, claimed_in, score_in, place_in

--- What stands before the score: so long that no record is short, see listpack.lua.
local function lease_stem(lease, now, worker)
  return string.format('%-49s ', lease .. ' ' .. whole(now) .. ' ' .. worker)
end

--- A record begins with its lease and a space; one lease may be the beginning of another.
local function holds_lease(record, lease)
  return record and string.find(record, lease, 1, true) == 1 and string.byte(record, #lease + 1) == 32
end

--- When a lease began, which renewing does not change; the default if the record is unreadable.
local function claimed_in(record, default)
  return count_in(string.match(record, '^%S+ (%S+)'), default)
end

--- The ready score at the claim; 0, the first of all, if the record is unreadable.
local function score_in(record)
  local score = string.match(record, '^%S+ %S+ %S+ +(%S+)')
  return number_in(score) and score or '0'
end

--- The lane and the chain that a lease names, or nil, and what it ends with, beginning there.
local function place_in(record)
  local before = 49   -- as long is what stands before the score, at least
  local at = string.find(record, ' lane=', before, true)
  local to = string.find(record, ' chain=', at or before, true)
  return at and string.sub(record, at + 6, to and to - 1), to and string.sub(record, to + 7),
    at and not to and string.sub(record, at)
end
