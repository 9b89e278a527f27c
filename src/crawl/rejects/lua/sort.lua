-- Sorts the first rejects aside. Some are removed, and the others move to the other end. After a
-- whole sort the others are in their order again.
-- KEYS: aside, source
-- ARGV: number of rejects, the SHA-1 of all with a line feed after each, a digit for each ('1' to
--       remove the reject, '0' to keep it), items to push
-- Answers 1; 0 if the first rejects are others. Then nothing was done.
local aside, source = unpack(KEYS)
local count, fates = tonumber(ARGV[1]), ARGV[3]
local first = 4
local items = #ARGV - first + 1

local refusal = type_refusal(aside, 'list')
    or items > 0 and source_push_refusal(source)
    or permission_refusal('LPOP', aside)
    or permission_refusal('LMOVE', aside, aside, 'LEFT', 'RIGHT')
if refusal then
    return refusal
end
local rejects = redis.call('LRANGE', aside, 0, count - 1)
rejects[#rejects + 1] = ''
if #rejects ~= count + 1 or redis.sha1hex(table.concat(rejects, '\n')) ~= ARGV[2] then
    return 0
end

-- After this line nothing can fail, except the first push if memory is short.
source_push(source, first, #ARGV)
for index = 1, count do
    if string.sub(fates, index, index) == '1' then
        redis.call('LPOP', aside)
    else
        redis.call('LMOVE', aside, aside, 'LEFT', 'RIGHT')
    end
end
return 1
