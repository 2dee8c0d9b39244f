/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "resource-file.h"

#include "ns3/abort.h"
#include "ns3/fatal-error.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace ns3
{

/// Reads a text from its beginning.
class ResourceFile::Parser
{
  public:
    /**
     * \param path path of the file
     * \param text what it holds
     */
    Parser(const std::string& path, const std::string& text)
        : m_path(path),
          m_text(text)
    {
    }

    /**
     * \return the value of the whole text
     */
    ResourceFile All()
    {
        ResourceFile value = Value("", 0);
        Skip();
        if (m_at != m_text.size())
        {
            Fail("more after the end");
        }
        return value;
    }

  private:
    /// Values within each other.
    static constexpr int DEEPEST = 32;

    /**
     * Ends the simulation.
     * \param problem what is wrong
     */
    [[noreturn]] void Fail(const std::string& problem) const
    {
        const auto line = 1 + std::count(m_text.begin(), m_text.begin() + m_at, '\n');
        NS_FATAL_ERROR(m_path << ", line " << line << ": no JSON: " << problem);
    }

    /// Goes past blanks.
    void Skip()
    {
        while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at])))
        {
            m_at++;
        }
    }

    /**
     * \param sign a character
     * \return whether it comes next; then goes past it
     */
    bool Take(char sign)
    {
        Skip();
        if (m_at < m_text.size() && m_text[m_at] == sign)
        {
            m_at++;
            return true;
        }
        return false;
    }

    /**
     * \param sign a character that has to come next
     */
    void Expect(char sign)
    {
        if (!Take(sign))
        {
            Fail(std::string("expected ") + sign);
        }
    }

    /**
     * \return the text that comes next, after its first quotation mark
     */
    std::string Text()
    {
        std::string text;
        while (true)
        {
            if (m_at >= m_text.size() || static_cast<unsigned char>(m_text[m_at]) < 0x20)
            {
                Fail("a text has no end");
            }
            char sign = m_text[m_at++];
            if (sign == '"')
            {
                return text;
            }
            if (sign == '\\')
            {
                sign = m_at < m_text.size() ? m_text[m_at++] : '\0';
                const std::string from = "\"\\/bfnrt";
                const auto place = from.find(sign);
                if (sign == 'u')
                {
                    AppendCode(text);
                    continue;
                }
                if (place == std::string::npos || sign == '\0')
                {
                    Fail("an unknown escape in a text");
                }
                sign = "\"\\/\b\f\n\r\t"[place];
            }
            text += sign;
        }
    }

    /**
     * Appends the character of four hexadecimal digits.
     * \param text to what
     */
    void AppendCode(std::string& text)
    {
        const std::string digits = m_text.substr(m_at, 4);
        if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
        {
            Fail("\\u needs four hexadecimal digits");
        }
        m_at += 4;
        const auto code = static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
        if (code < 0x80)
        {
            text += static_cast<char>(code);
        }
        else if (code < 0x800)
        {
            text += static_cast<char>(0xc0 | code >> 6);
            text += static_cast<char>(0x80 | (code & 0x3f));
        }
        else
        {
            text += static_cast<char>(0xe0 | code >> 12);
            text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
            text += static_cast<char>(0x80 | (code & 0x3f));
        }
    }

    /**
     * \param place where the value stands
     * \param depth how deep
     * \return the value that comes next
     */
    ResourceFile Value(const std::string& place, int depth)
    {
        if (depth > DEEPEST)
        {
            Fail("values within values are deeper than " + std::to_string(DEEPEST));
        }
        ResourceFile value;
        value.m_file = m_path;
        value.m_place = place;
        if (Take('{'))
        {
            value.m_kind = Kind::OBJECT;
            while (!Take('}'))
            {
                if (!value.m_keys.empty())
                {
                    Expect(',');
                }
                Expect('"');
                const std::string key = Text();
                if (std::find(value.m_keys.begin(), value.m_keys.end(), key) != value.m_keys.end())
                {
                    Fail("key \"" + key + "\" stands twice");
                }
                Expect(':');
                value.m_keys.push_back(key);
                value.m_values.push_back(Value(place.empty() ? key : place + "." + key, depth + 1));
            }
        }
        else if (Take('['))
        {
            value.m_kind = Kind::ARRAY;
            while (!Take(']'))
            {
                if (!value.m_values.empty())
                {
                    Expect(',');
                }
                value.m_values.push_back(
                    Value(place + "[" + std::to_string(value.m_values.size()) + "]", depth + 1));
            }
        }
        else if (Take('"'))
        {
            value.m_kind = Kind::TEXT;
            value.m_text = Text();
        }
        else
        {
            Word(value);
        }
        return value;
    }

    /**
     * Reads a number, true, false or null.
     * \param value what becomes of it
     */
    void Word(ResourceFile& value)
    {
        const auto end = std::find_if_not(m_text.begin() + m_at, m_text.end(), [](unsigned char sign) {
            return std::isalnum(sign) || sign == '-' || sign == '+' || sign == '.';
        });
        const std::string word(m_text.begin() + m_at, end);
        if (word == "true" || word == "false" || word == "null")
        {
            value.m_kind = word == "null" ? Kind::NOTHING : Kind::TRUTH;
        }
        else
        {
            char* rest = nullptr;
            value.m_kind = Kind::NUMBER;
            value.m_number = std::strtod(word.c_str(), &rest);
            const bool isDecimal = word.find_first_not_of("0123456789+-.eE") == std::string::npos;
            if (word.empty() || *rest != '\0' || !isDecimal || !std::isfinite(value.m_number))
            {
                Fail(word.empty() ? "expected a value" : "\"" + word + "\" is no value");
            }
        }
        m_at += word.size();
    }

    std::string m_path;      //!< Path of the file.
    const std::string& m_text; //!< What it holds.
    std::size_t m_at{0};     //!< Where the parser is.
};

ResourceFile
ResourceFile::Read(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    NS_ABORT_MSG_UNLESS(file, path << ": cannot be read; it is what \"routecast export --format ns3\" writes");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return Parser(path, text).All();
}

void
ResourceFile::Fail(const std::string& problem) const
{
    NS_FATAL_ERROR(m_file << (m_place.empty() ? "" : ", " + m_place) << ": " << problem);
}

const ResourceFile&
ResourceFile::At(const std::string& key) const
{
    if (m_kind != Kind::OBJECT)
    {
        Fail("expected an object");
    }
    const auto found = std::find(m_keys.begin(), m_keys.end(), key);
    if (found == m_keys.end())
    {
        Fail("there is no key \"" + key + "\"");
    }
    return m_values[found - m_keys.begin()];
}

const std::vector<ResourceFile>&
ResourceFile::Values() const
{
    if (m_kind != Kind::ARRAY)
    {
        Fail("expected an array");
    }
    return m_values;
}

void
ResourceFile::CheckKeys(const std::vector<std::string>& known) const
{
    for (const std::string& key : known)
    {
        At(key);
    }
    for (const std::string& key : m_keys)
    {
        if (std::find(known.begin(), known.end(), key) == known.end())
        {
            Fail("key \"" + key + "\" is unknown to this version of the module");
        }
    }
}

const std::string&
ResourceFile::Text() const
{
    if (m_kind != Kind::TEXT)
    {
        Fail("expected a text");
    }
    return m_text;
}

double
ResourceFile::Number(double least) const
{
    if (m_kind != Kind::NUMBER || m_number < least)
    {
        Fail("expected a number of at least " + std::to_string(least) +
             (m_kind == Kind::NUMBER ? ", got " + std::to_string(m_number) : ""));
    }
    return m_number;
}

int64_t
ResourceFile::Whole(int64_t least, int64_t most) const
{
    if (m_kind != Kind::NUMBER || m_number != std::floor(m_number) || m_number < static_cast<double>(least) ||
        m_number > static_cast<double>(most))
    {
        Fail("expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
             (m_kind == Kind::NUMBER ? ", got " + std::to_string(m_number) : ""));
    }
    return static_cast<int64_t>(m_number);
}

} // namespace ns3
