--- Jobs that belong to a flow or to a group, or come out of the outbox of a database, tell it how they ended.
--   mark.w   whom they tell: `kind:queue:id:name`, where kind is f(low), g(roup) or o(utbox); of an outbox, queue is
--            `@` and the database's name, and name the digest of the job
--   mark.t   what was told last; a job that is run again after its end tells only what has changed
--   mark.o   the first job of a line of retries, whose end it is
-- Members of a group are counted, and settled jobs of an outbox listed, one message a call; of a node its flow hears
-- the result as well.
--@include keys, job_metadata, outbox
--@exports report_job_end
local SENT_TTL_S = 300   -- a job that was sent by a program which has slept must not come again
local SETTLED_TTL_S = 60   -- the same of an outbox, whose relay looks into its messages more often than that

--- What a dead job failed with, as its worker wrote it.
local function last_error(id)
  local info = key('info:' .. id)
  local number = call('HGET', info, 'errors')
  return number and call('HGET', info, 'error:' .. number) or ''
end

local function node_ended(kind, to, flow, name, state, id, mark, result)
  local job = mark.o or id
  call('SET', key('sent:' .. job), state, 'EX', SENT_TTL_S)
  local words = state == 'completed' and (result or '') or last_error(id)
  write_message(to, { 'ended', kind, flow, name, state, job, words })
end

local function note_settled(outboxes, to, state, id, mark, digest)
  local list, job = outboxes[to] or {}, mark.o or id
  outboxes[to], list[#list + 1], list[#list + 2] = list, job, state
  call('SET', key('sent:' .. job), digest == '' and state or 'digest=' .. digest, 'EX', SETTLED_TTL_S)
end

local function count_member(groups, mark, state)
  local changes = groups[mark.w] or {}
  groups[mark.w] = changes
  changes[state] = (changes[state] or 0) + 1
  if mark.t then
    changes[mark.t] = (changes[mark.t] or 0) - 1
  end
end

--- Kind, queue, id and name out of a mark; nothing if it names no flow and no group.
local function told_in(mark)
  return string.match(tostring(mark.w), '^([fgo]):([^:]+):([^:]+):(.*)$')
end

local function result_of(id, results)
  for i = 1, #(results or {}), 2 do
    if results[i] == id then
      return results[i + 1]
    end
  end
end

--- `ids` came to `state`; `marks` are theirs, and `results` as id, result …
local function report_job_end(state, ids, marks, results)
  local groups, outboxes, told = {}, {}, {}
  for _, id in ipairs(ids) do
    local mark = marks[id]
    if mark and mark.w and mark.t ~= state then
      local kind, to, which, name = told_in(mark)
      if kind == 'o' then
        note_settled(outboxes, to, state, id, mark, name)
      elseif name == '' then
        count_member(groups, mark, state)
      elseif name then
        node_ended(kind, to, which, name, state, id, mark, result_of(id, results))
      end
      mark.t = state
      told[#told + 1] = id
    end
  end
  for w, changes in pairs(groups) do
    local to, which = string.match(w, '^%w:([^:]+):([^:]+):')
    write_message(to, { 'counted', which, changes })
  end
  for to, list in pairs(outboxes) do
    write_message(to, { 'settled', list })
  end
  save_marks(told, marks)
end
