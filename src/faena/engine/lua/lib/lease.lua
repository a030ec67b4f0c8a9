--- What a lease is written as: lease id · since when · worker, then the score that its job goes back to.
--@include key
--@exports lease_stem

-- Small hashes with values of up to 64 bytes are listpacks, where each access is O(n): records are
-- made longer than that.
local function lease_stem(lease, now, worker)
  return string.format('%-49s ', lease .. ' ' .. whole(now) .. ' ' .. worker)
end
