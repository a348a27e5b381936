"""Does a relevance score keep what it promises?"""
