-- Adds keys to a filter.
-- KEYS: the filter's definition; the last answer of this client; the filter's own
-- ARGV: the filter's id; the number of this call; the number of keys; their places; their numbers
-- from 1; further arguments that say where they are
-- Answers 'ok' and the numbers of those that were unseen, or 'filter' and the id of the filter that
-- is there instead.

local definition, answer = KEYS[1], KEYS[2]
local call, count = ARGV[2] .. ':', tonumber(ARGV[3])

local found = redis.call('HGET', definition, 'id')
if found ~= ARGV[1] then
    return {'filter', found or ''}
end
-- Asked again, as the answer was lost on its way: the keys were unseen then.
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
