--- Lease records: `lease claimed_at worker score [lane=…] [chain=…]`, padded before the score.
--@include read
--@exports holds_lease, claimed_in, score_in
--- A record begins with its lease and a space; one lease may be the beginning of another.
local function holds_lease(record, lease)
  return record and string.find(record, lease, 1, true) == 1 and string.byte(record, #lease + 1) == 32
end

--- When a lease began, which renewing does not change; the default where nobody can read it.
local function claimed_in(record, default)
  return count_in(string.match(record, '^%S+ (%S+)'), default)
end

--- The ready score a lease was claimed at; of one that nobody can read, the first of all.
local function score_in(record)
  local score = string.match(record, '^%S+ %S+ %S+ +(%S+)')
  return number_in(score) and score or '0'
end
