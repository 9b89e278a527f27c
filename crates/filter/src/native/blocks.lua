-- Judges items by blocks of 512 bits in Redis strings: a block is read whole and written whole. The
-- extras are for each item BLOCKS times the first and the last byte of a block, as Redis takes
-- offsets: to make text of a number costs it more than to read the block. `places` has for each of
-- those blocks the number of its string (2 bytes, from 1; 0 where the item goes on unchecked), and
-- WIDTH times the number of a word in the block (1 byte, from 1) and a bit of it (4 bytes, as a
-- number with that bit alone), big endian. A block is 16 little endian words of 32 bits.

local FORMAT = '>' .. string.rep('I2' .. string.rep('BI4', WIDTH), BLOCKS)
local STRIDE, IN_BLOCK = BLOCKS * (2 + 5 * WIDTH), 1 + 2 * WIDTH
local WORDS, BYTES = '<' .. string.rep('I4', 16), 64

local function filter_refusal(keys)
    for _, key in ipairs(keys) do
        local refusal = permission_refusal('SETRANGE', key, 0, '')
        if refusal then
            return refusal
        end
    end
end

-- A block of the string `key`. This refuses keys of another type.
local function block(key, from, to)
    local bytes = redis.call('GETRANGE', key, from, to)
    if #bytes < BYTES then
        bytes = bytes .. string.rep('\0', BYTES - #bytes)
    end
    return {struct.unpack(WORDS, bytes)}
end

-- Judges the arguments from `first` to `last`. Answers those that go on, how many of them are
-- unseen, and what remembers those. Each item is judged as if those before it had been remembered
-- already.
local function judge(keys, places, first, last, first_extra)
    local blocks, written = {}, {}
    for number = 1, #keys do
        blocks[number] = {}
    end
    local onward, unseen, place, extra = {}, 0, 1, first_extra
    for item = first, last do
        local found = {struct.unpack(FORMAT, places, place)}
        place = place + STRIDE
        local is_filtered, is_unseen = found[1] > 0, false
        if is_filtered then
            for at = 1, BLOCKS * IN_BLOCK, IN_BLOCK do
                local number, from = found[at], ARGV[extra]
                local words = blocks[number][from]
                if not words then
                    words = block(keys[number], from, ARGV[extra + 1])
                    blocks[number][from] = words
                end
                extra = extra + 2
                for index = at + 1, at + 2 * WIDTH, 2 do
                    local bit = found[index + 1]
                    local word = words[found[index]]
                    -- Arithmetic is several times faster than a call of a library.
                    if word % (bit + bit) < bit then
                        words[found[index]], is_unseen = word + bit, true
                        if not words.key then
                            words.key, words.from = keys[number], from
                            written[#written + 1] = words
                        end
                    end
                end
            end
        else
            extra = extra + 2 * BLOCKS
        end
        if is_unseen then
            unseen = unseen + 1
        end
        if is_unseen or not is_filtered then
            onward[#onward + 1] = ARGV[item]
        end
    end
    return onward, unseen, function()
        for index = 1, #written do
            local words = written[index]
            local bytes = struct.pack(WORDS, unpack(words, 1, 16))
            redis.call('SETRANGE', words.key, words.from, bytes)
        end
    end
end
