--- Unique claims: `unique:<mode>:<hash>` names the job that others are duplicates of. A mode has its
-- own claims: they end at different moments, and one must not take another's.
--   waiting   until it is claimed       live      until it is finished
--   throttle  for a time                debounce  replaced and put off while it waits
--   last      live; while it runs one follower waits blocked, and the newest wins
-- A throttle's value is "id until", so that a test's clock is obeyed; its TTL only cleans up.
--@include keys, job_metadata
--@exports unique_key, release_unique, follower_of, pass_unique
local function unique_key(mode, hash)
  return key('unique:' .. mode .. ':' .. hash)
end

--- Give up `id`'s claim, if it still is the holder.
local function release_unique(id, mark)
  local claim = unique_key(mark.m, mark.u)
  if call('GET', claim) == id then
    call('DEL', claim)
  end
end

--- The job that waits blocked behind one with this mark and the instant it may run, or nil.
-- `n` outlives a follower that was removed, and its id may have come back behind another job: only
-- one of the same claim counts.
local function follower_of(mark)
  local at = mark.n and call('ZSCORE', key('blocked'), mark.n)
  local its = at and marks_of({ mark.n })[mark.n]
  if its and its.u == mark.u and its.m == mark.m then
    return mark.n, tonumber(at)
  end
end

--- A job that ends gives its claim up, to its follower when one waits. Returns as `follower_of`.
local function pass_unique(id, mark)
  release_unique(id, mark)
  local follower, at = follower_of(mark)
  if follower then
    call('ZREM', key('blocked'), follower)
    call('SET', unique_key(mark.m, mark.u), follower)
  end
  return follower, at
end
