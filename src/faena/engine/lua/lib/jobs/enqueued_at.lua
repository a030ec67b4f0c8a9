--- When a job was taken in. The score of one that is ready, or was when it was claimed, is that instant and what its
-- priority is worth; of one in a chain the instant alone. A job that leaves its place keeps the instant in its mark.
--@include spec_line, score, keys
--@exports enqueued_at, told_enqueued
local function enqueued_at(spec, mark, score, conf)
  if mark.q then
    return mark.q
  end
  local _, chain = lane_in(spec)
  return tonumber(score) - (chain and 0 or score_of(conf, 0, priority_of(spec, mark), mark.a or 0))
end

local IN_PLACE = { ready = true, blocked = true, running = true }

--- The same in words, for readers; '' where nothing says so. `score` of a running job is that of its claim.
local function told_enqueued(spec, mark, state, score, conf)
  if mark.q or spec and score and IN_PLACE[state] and conf.version then
    return whole(enqueued_at(spec, mark, score, conf))
  end
  return ''
end
