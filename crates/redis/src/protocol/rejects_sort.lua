-- Sorts the first of the rejects that were set aside. Removes some of them, and moves the others to
-- the other end of the list. After all rejects are sorted, the kept ones are in their old order.
-- KEYS: aside, source
-- ARGV: command that pushes to the source, number of rejects to sort, the SHA-1 of these rejects
--       with a line feed after each, a digit for each ('1' to remove the reject, '0' to keep it),
--       items to push, which then come after all waiting items
-- Answers 1; 0 if the script did nothing, because the first rejects have another SHA-1; or an
--       error
-- Never removes a reject without the push of its item, or the reverse.
local aside, source = unpack(KEYS)
local push, count, digest, fates = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local first = 5

local refusal = type_refusal(aside, 'list')
    or #ARGV >= first and (type_refusal(source, 'list') or permission_refusal(push, source, ''))
    or permission_refusal('LPOP', aside)
    or permission_refusal('LMOVE', aside, aside, 'LEFT', 'RIGHT')
if refusal then
    return refusal
end
local rejects = redis.call('LRANGE', aside, 0, count - 1)
rejects[#rejects + 1] = ''
if #rejects ~= count + 1 or redis.sha1hex(table.concat(rejects, '\n')) ~= digest then
    return 0
end

-- After this line nothing can fail, except the first push if memory is short.
push_arguments(push, source, first)
for index = 1, count do
    if string.sub(fates, index, index) == '1' then
        redis.call('LPOP', aside)
    else
        redis.call('LMOVE', aside, aside, 'LEFT', 'RIGHT')
    end
end
return 1
