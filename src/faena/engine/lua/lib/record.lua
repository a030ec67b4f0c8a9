--- Lease records: `lease claimed_at worker score [lane=…] [chain=…]`, padded before the score.
--- A record begins with its lease and a space; one lease may be the beginning of another.
local function holds_lease(record, lease)
  return record and string.find(record, lease, 1, true) == 1 and string.byte(record, #lease + 1) == 32
end

--- The ready score a lease was claimed at.
local function score_in(record)
  return string.match(record, '^%S+ %S+ %S+ +(%S+)')
end
