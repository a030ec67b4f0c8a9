--- Marks: the facts of jobs that are not ordinary, by id. An ordinary job has none.
--   a  attempts used        l  deliveries lost with their worker     i  the job has an info hash
--   p  changed priority     c  cancellation asked while running
--   u  its unique hash      m  mode of the unique claim              n  the job that follows it
-- `z` makes a mark longer than 64 bytes: a small hash of shorter values is a listpack, where finding
-- each of a batch of ids is O(n).
--@include key
local PADDING = string.rep('.', 64)

local function marks_of(ids)
  local marks = {}
  if #ids > 0 and call('EXISTS', key('marks')) == 1 then
    local packed = call('HMGET', key('marks'), unpack(ids))
    for i = 1, #ids do
      if packed[i] then
        marks[ids[i]] = cmsgpack.unpack(packed[i])
      end
    end
  end
  return marks
end

local function save_mark(id, mark)
  mark.z = PADDING
  call('HSET', key('marks'), id, cmsgpack.pack(mark))
end
