/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef RESOURCE_FILE_H
#define RESOURCE_FILE_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ns3
{

/**
 * \ingroup router-resources
 *
 * A value of a JSON file, with its place in it. Whatever is not as it should be ends the simulation with a message that
 * says where, what was got and what is allowed; so does a key that nobody asked for (CheckKeys).
 */
class ResourceFile
{
  public:
    /**
     * Read a file.
     * \param path its path
     * \return its value, an object
     */
    static ResourceFile Read(const std::string& path);

    /**
     * \param key a key of this object
     * \return its value, which has to be there
     */
    const ResourceFile& At(const std::string& key) const;

    /**
     * \return the values of this array
     */
    const std::vector<ResourceFile>& Values() const;

    /**
     * \param known keys that this object may have, all of which it must have
     */
    void CheckKeys(const std::vector<std::string>& known) const;

    /**
     * \return this text
     */
    const std::string& Text() const;

    /**
     * \param least the least that is allowed
     * \return this number
     */
    double Number(double least = 0.0) const;

    /**
     * \param least the least that is allowed
     * \param most the most that is allowed
     * \return this whole number
     */
    int64_t Whole(int64_t least, int64_t most) const;

    /**
     * \param choices names and what they stand for
     * \return what this text stands for
     */
    template <typename T>
    T Choice(const std::vector<std::pair<std::string, T>>& choices) const
    {
        std::string known;
        for (const auto& [name, value] : choices)
        {
            if (name == Text())
            {
                return value;
            }
            known += (known.empty() ? "" : ", ") + name;
        }
        Fail("got \"" + Text() + "\"; allowed are " + known);
    }

    /**
     * Ends the simulation.
     * \param problem what is wrong here
     */
    [[noreturn]] void Fail(const std::string& problem) const;

  private:
    /// What a value is.
    enum class Kind
    {
        NOTHING,
        TRUTH,
        NUMBER,
        TEXT,
        ARRAY,
        OBJECT
    };

    /// Reads a text from its beginning.
    class Parser;

    Kind m_kind{Kind::NOTHING};                                 //!< What it is.
    std::string m_file;                                         //!< Path of the file.
    std::string m_place;                                        //!< Place in it, such as "tasks[2].needs".
    double m_number{0.0};                                       //!< The number.
    std::string m_text;                                         //!< The text.
    std::vector<ResourceFile> m_values;                         //!< Values of an array, or of an object in order.
    std::vector<std::string> m_keys;                            //!< Keys of an object.
};

} // namespace ns3

#endif // RESOURCE_FILE_H
