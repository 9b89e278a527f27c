-- Judges items by lines of 512 bits in Redis strings: a line is read whole and written whole.
-- `places` has for each item LINES times the number of a string (2 bytes, from 1; 0 where the item
-- goes on unchecked) and the offset of a line in it (4 bytes), and WIDTH times the number of a word
-- in that line (1 byte, from 1) and a bit of it (4 bytes, as a number with that bit alone), big
-- endian. A line is 16 little endian words of 32 bits.

local FORMAT = '>' .. string.rep('I2I4' .. string.rep('BI4', WIDTH), LINES)
local STRIDE = LINES * (6 + 5 * WIDTH)
local WORDS, BYTES = '<' .. string.rep('I4', 16), 64

local function filter_refusal(keys)
    for _, key in ipairs(keys) do
        local refusal = permission_refusal('SETRANGE', key, 0, '')
        if refusal then
            return refusal
        end
    end
end

-- Answers the items that go on, how many of them are unseen, and what remembers those. Each item is
-- judged as if those before it had been remembered already.
local function judge(keys, places, items)
    local lines, written = {}, {}
    local function line(number, offset)
        local name = number * 4294967296 + offset
        local words = lines[name]
        if not words then
            -- This refuses keys of another type, too.
            local bytes = redis.call('GETRANGE', keys[number], offset, offset + BYTES - 1)
            if #bytes < BYTES then
                bytes = bytes .. string.rep('\0', BYTES - #bytes)
            end
            words = {struct.unpack(WORDS, bytes)}
            lines[name] = words
        end
        return words
    end

    local onward, unseen = {}, 0
    for item = 1, #items do
        local found = {struct.unpack(FORMAT, places, (item - 1) * STRIDE + 1)}
        local is_filtered, is_unseen = found[1] > 0, false
        if is_filtered then
            for from = 1, LINES * (2 + 2 * WIDTH), 2 + 2 * WIDTH do
                local words = line(found[from], found[from + 1])
                for index = from + 2, from + 2 * WIDTH, 2 do
                    local number, bit = found[index], found[index + 1]
                    local word = words[number]
                    -- Arithmetic is several times faster than a call of a library.
                    if word % (bit + bit) < bit then
                        words[number], is_unseen = word + bit, true
                        if not words.at then
                            words.key, words.at = keys[found[from]], found[from + 1]
                            written[#written + 1] = words
                        end
                    end
                end
            end
        end
        if is_unseen then
            unseen = unseen + 1
        end
        if is_unseen or not is_filtered then
            onward[#onward + 1] = items[item]
        end
    end
    return onward, unseen, function()
        for _, words in ipairs(written) do
            redis.call('SETRANGE', words.key, words.at, struct.pack(WORDS, unpack(words, 1, 16)))
        end
    end
end
