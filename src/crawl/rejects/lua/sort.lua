-- Sorts the first of the rejects that were set aside. Removes some of them, and moves the others to
-- the other end of the list. After all rejects are sorted, the kept ones are in their old order.
-- KEYS: aside, source
-- ARGV: number of rejects to sort, the SHA-1 of these rejects with a line feed after each, a digit
--       for each ('1' to remove the reject, '0' to keep it), items to push
-- Answers 1; 0 if the script did nothing, because the first rejects have another SHA-1.
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
