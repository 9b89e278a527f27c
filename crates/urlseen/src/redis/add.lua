-- Adds keys to a filter, and tells which of them were unseen.
-- KEYS: definition of the filter; last answer to this client; Redis keys of the filter
-- ARGV: id of the filter; number of this call; number of the keys to add; their encoded positions
--       in the filter; their numbers, which count from 1; further arguments of the filter's kind
-- Returns 'ok' and the numbers of the unseen keys, with commas between. If Redis has another filter
-- or none, returns 'filter' and the id of the other filter ('' for none), and adds nothing.

local definition, answer = KEYS[1], KEYS[2]
local call, count = ARGV[2] .. ':', tonumber(ARGV[3])

local found = redis.call('HGET', definition, 'id')
if found ~= ARGV[1] then
    return {'filter', found or ''}
end
-- The client lost the answer to this call and repeats it: return the same answer again.
local before = redis.call('GET', answer)
if before and string.sub(before, 1, #call) == call then
    return {'ok', string.sub(before, #call + 1)}
end
local keys = {unpack(KEYS, 3)}
local refusal = filter_refusal(keys) or permission_refusal('SET', answer, '', 'EX', '60')
if refusal then
    return refusal
end
local unseen, _, remember = judge(keys, ARGV[4], 5, 4 + count, 5 + count)
local numbers = table.concat(unseen, ',')
if #unseen > 0 then
    redis.call('SET', answer, call .. numbers, 'EX', '60')
    remember()
end
return {'ok', numbers}
