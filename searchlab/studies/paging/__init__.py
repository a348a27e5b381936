"""Does paging repeat or skip while a library changes?"""
